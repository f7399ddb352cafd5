package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/seed-161337e5/caddyratelimit/bench/internal/rig"
)

// figures are the results of one peer under one load.
type figures struct {
	perSecond float64 // requests decided
	p50, p99  float64 // microseconds
	redisCPU  float64 // microseconds of the server for each request
	clientCPU float64 // microseconds of this process for each request
	allocs    float64 // of each request
	failed    float64 // part of the requests that got an error instead of a decision
}

// usage is what has been used up to a moment.
type usage struct {
	at            time.Time
	redis, client time.Duration
	mallocs       uint64
}

func use(ctx context.Context, server *rig.Redis) (usage, error) {
	redis, err := server.CPU(ctx)
	if err != nil {
		return usage{}, err
	}
	var self syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &self); err != nil {
		return usage{}, err
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return usage{
		at: time.Now(), redis: redis, mallocs: memory.Mallocs,
		client: time.Duration(self.Utime.Nano() + self.Stime.Nano()),
	}, nil
}

// measure puts a load on a limiter and returns what it costs.
func measure(
	ctx context.Context, server *rig.Redis, l *limiter, goroutines, clients int, d time.Duration,
) (figures, *tally, error) {
	runtime.GC()
	var before, after usage
	var failedBefore, failedAfter error
	t := load(ctx, l, goroutines, distribution(uniform, clients), min(d/2, 300*time.Millisecond), d,
		func() { before, failedBefore = use(ctx, server) },
		func() { after, failedAfter = use(ctx, server) })
	if err := errors.Join(failedBefore, failedAfter, ctx.Err()); err != nil {
		return figures{}, nil, err
	}
	decided := float64(t.admitted + t.refused)
	if decided == 0 {
		return figures{}, nil, fmt.Errorf("nothing was decided: %w", t.err)
	}
	micros := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	return figures{
		perSecond: decided / after.at.Sub(before.at).Seconds(),
		p50:       micros(t.latency.quantile(0.5)),
		p99:       micros(t.latency.quantile(0.99)),
		redisCPU:  micros(after.redis-before.redis) / decided,
		clientCPU: micros(after.client-before.client) / decided,
		allocs:    float64(after.mallocs-before.mallocs) / decided,
		failed:    float64(t.failed) / (decided + float64(t.failed)),
	}, t, nil
}
