package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seed-161337e5/caddyratelimit/bench/internal/rig"
)

// scenario compares a Caddy that has the directive with one that has not.
type scenario struct {
	name        string
	bare, with  string // the sites
	clients     int
	skewed      bool // clients come as Zipf's law with an exponent of 1.1 says, else all alike
	connections int
	warm        time.Duration // how long the Caddy with the directive runs before it is measured
	refuses     bool
	ratio       float64       // part of the requests/s that should be left; 0: any
	added       time.Duration // what may be added to p50; 0: anything
	memory      float64       // bytes that may be added; 0: any number
}

// A client's limit per day. No client reaches the first two; roomy is low enough for the state of
// a client that came once to live for seconds, as states do in production. The third is used up
// at once.
const (
	roomy  = 10_000
	plenty = 1_000_000_000
	hardly = 1
)

const manyClients = 100_000

// addedRTT is how far away the farther Redis is.
const addedRTT = time.Millisecond

func scenarios(redis *rig.Redis, farRedis string) []scenario {
	near, socket, far := redisStore(redis.Address), redisStore("unix/"+redis.Socket), redisStore(farRedis)
	return []scenario{
		{
			name: "memory, 100,000 keys", bare: bareSite, with: limited(roomy, memoryStore),
			clients: manyClients, connections: 32, ratio: 0.9, memory: 60e6,
		},
		{
			name: "memory, one hot key", bare: bareSite, with: limited(plenty, memoryStore),
			clients: 1, connections: 32,
		},
		{
			name: "memory, all refused", bare: bareRefusal, with: limited(hardly, memoryStore),
			clients: 1, connections: 32, refuses: true, ratio: 0.95,
		},
		{
			name: "Redis, 100,000 keys", bare: bareSite, with: limited(roomy, near),
			clients: manyClients, connections: 32, ratio: 0.7,
		},
		{
			name: "Redis, one hot key", bare: bareSite, with: limited(plenty, near),
			clients: 1, connections: 32, ratio: 0.7,
		},
		{
			name: "Redis on a unix socket, 100,000 keys", bare: bareSite, with: limited(roomy, socket),
			clients: manyClients, connections: 32,
		},
		{
			name: "Redis on a unix socket, one hot key", bare: bareSite, with: limited(plenty, socket),
			clients: 1, connections: 32,
		},
		{
			name: "Redis, all refused", bare: bareRefusal, with: limited(hardly, near),
			clients: 1, connections: 32, refuses: true, ratio: 0.95,
		},
		{
			name: "Redis 1 ms away, 100,000 keys, 256 connections", bare: bareSite, with: limited(roomy, far),
			clients: manyClients, connections: 256, added: 2500 * time.Microsecond,
		},
		{
			name: "lend, one hot key, beside memory", bare: limited(plenty, memoryStore), with: lent(plenty, near),
			clients: 1, connections: 32, ratio: 0.95,
		},
		{
			name: "lend, one hot key", bare: bareSite, with: lent(plenty, near),
			clients: 1, connections: 32, ratio: 0.9,
		},
		{
			name: "lend with overrides, ban and enforce, one hot key, beside lend without", bare: lent(plenty, near), with: managed(plenty, near),
			clients: 1, connections: 32, ratio: 0.97,
		},
		{
			name: "lend, Zipf(1.1) over 100,000 keys", bare: bareSite, with: lent(plenty, near),
			clients: manyClients, skewed: true, connections: 32, warm: 20 * time.Second, ratio: 0.8,
		},
		{
			name: "lend, 100,000 keys, beside Redis without", bare: limited(roomy, near), with: lent(roomy, near),
			clients: manyClients, connections: 32, ratio: 0.97,
		},
		{
			name: "lend, Redis 1 ms away, one hot key, beside memory", bare: limited(plenty, memoryStore), with: lent(plenty, far),
			clients: 1, connections: 32, added: 100 * time.Microsecond,
		},
	}
}

// outcome is the result of a scenario: medians over the rounds.
type outcome struct {
	scenario    scenario
	bare, with  float64   // requests/s
	ratios      []float64 // of the rounds
	bare50      time.Duration
	with50      time.Duration
	added       time.Duration // added to p50
	with99      time.Duration
	addedMemory float64
}

// bench is what scenarios run on.
type bench struct {
	binary   string
	wrk      *wrk
	version  string        // Redis's version
	trip     time.Duration // how much longer a PING takes through the proxy
	rounds   int
	time     time.Duration
	progress io.Writer
}

// measure starts both instances and loads them in turn. The order alternates.
func (b *bench) measure(ctx context.Context, s scenario) (o outcome, err error) {
	fmt.Fprintln(b.progress, s.name)
	bare, err := rig.StartCaddy(b.binary, s.bare)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, bare.Close()) }()
	with, err := rig.StartCaddy(b.binary, s.with)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, with.Close()) }()

	var ratios, bares, withs, bares50, withs50, withs99, adds []float64
	if s.warm > 0 {
		if _, err := b.load(ctx, with, s, s.warm); err != nil {
			return o, err
		}
	}
	for round := range b.rounds + 1 {
		var plain, through run
		both := []func() error{
			func() (err error) { plain, err = b.load(ctx, bare, s, b.time); return err },
			func() (err error) { through, err = b.load(ctx, with, s, b.time); return err },
		}
		first := round % 2
		if err := both[first](); err != nil {
			return o, err
		}
		if err := both[1-first](); err != nil {
			return o, err
		}
		if round == 0 {
			continue // this one warms up: connections, keys, heaps
		}
		ratios = append(ratios, through.perSecond/plain.perSecond)
		bares, withs = append(bares, plain.perSecond), append(withs, through.perSecond)
		bares50, withs50 = append(bares50, float64(plain.p50)), append(withs50, float64(through.p50))
		withs99 = append(withs99, float64(through.p99))
		adds = append(adds, float64(through.p50-plain.p50))
	}
	below, err := bare.Memory()
	if err != nil {
		return o, err
	}
	above, err := with.Memory()
	if err != nil {
		return o, err
	}
	return outcome{
		scenario: s, bare: rig.Median(bares), with: rig.Median(withs), ratios: ratios,
		bare50: time.Duration(rig.Median(bares50)), with50: time.Duration(rig.Median(withs50)),
		added: time.Duration(rig.Median(adds)), with99: time.Duration(rig.Median(withs99)), addedMemory: above - below,
	}, nil
}

// load runs wrk for a time, and checks that the answers are those of the scenario.
func (b *bench) load(ctx context.Context, c *rig.Caddy, s scenario, lasts time.Duration) (run, error) {
	r, err := b.wrk.against(ctx, c.URL, s.connections, s.clients, s.skewed, lasts)
	if err != nil {
		return r, err
	}
	refused := 0.0
	if s.refuses {
		refused = r.requests
	}
	// The request that used the limit up was admitted.
	if off := refused - r.refused; off < -0.5 || off > 1.5 {
		return r, fmt.Errorf("%.0f of %.0f requests refused, want %.0f. The metrics and the log of this Caddy:\n%s", r.refused, r.requests, refused, c.Account())
	}
	return r, nil
}
