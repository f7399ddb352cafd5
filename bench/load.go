package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// tally is what one goroutine, or all of them together, have counted.
type tally struct {
	admitted, refused, failed int64
	err                       error // one of the errors
	latency                   histogram
}

func (t *tally) merge(other *tally) {
	t.admitted += other.admitted
	t.refused += other.refused
	t.failed += other.failed
	if t.err == nil {
		t.err = other.err
	}
	t.latency.merge(&other.latency)
}

// The phases of a load. It does not stop between them, so the measurement begins and ends with
// all goroutines running.
const (
	warming int32 = iota
	measuring
	over
)

// load runs a number of goroutines. Each one decides the next request as soon as the last one is
// decided, for clients as they are drawn. It calls begin and end around the time that is
// measured.
func load(
	ctx context.Context, l *limiter, goroutines int, clients func(*rand.Rand) drawer, warm, measured time.Duration, begin, end func(),
) *tally {
	var phase atomic.Int32
	tallies := make([]tally, goroutines)
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() {
			work(ctx, l.taker(), clients(rand.New(rand.NewPCG(uint64(g), rand.Uint64()))), &phase, &tallies[g])
		})
	}
	time.Sleep(warm)
	begin()
	phase.Store(measuring)
	time.Sleep(measured)
	phase.Store(over)
	end()
	group.Wait()
	sum := &tally{}
	for i := range tallies {
		sum.merge(&tallies[i])
	}
	return sum
}

func work(ctx context.Context, decide take, client drawer, phase *atomic.Int32, t *tally) {
	since := time.Now()
	for {
		admitted, err := decide(ctx, client())
		now := time.Now()
		took := now.Sub(since)
		since = now
		switch phase.Load() {
		case warming:
			continue
		case over:
			return
		}
		switch {
		case err != nil:
			t.failed++
			t.err = err
			continue
		case admitted:
			t.admitted++
		default:
			t.refused++
		}
		t.latency.add(took)
	}
}

// visit sends one request of each client, so that all keys exist.
func visit(ctx context.Context, l *limiter, clients int) error {
	const goroutines = 64
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, goroutines)
	for g := range goroutines {
		group.Go(func() {
			decide := l.taker()
			for client := next.Add(1) - 1; client < int64(clients) && ctx.Err() == nil; client = next.Add(1) - 1 {
				if _, err := decide(ctx, int(client)); err != nil {
					errs[g] = fmt.Errorf("client %d: %w", client, err)
					return
				}
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}
