package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// noDenyCache makes the store ask Redis every time.
const noDenyCache = -1

// ours is this project's store: one Take decides all zones of a request. It remembers a refusal
// for as long as denyCache says, see redisstore.Options.
func ours(name, algorithm string, denyCache time.Duration) peer {
	return peer{
		name:  name,
		setup: "redisstore, default pool",
		lends: algorithm == "concurrency",
		open: func(address string, l limit) (*limiter, error) {
			a, err := algorithms.Get(algorithm)
			if err != nil {
				return nil, err
			}
			_, leases := a.(algorithms.Leaser)
			rules := make([]*store.Rule, l.zones)
			for i := range rules {
				of := algorithms.Limit{Events: l.events, Window: l.period}
				if leases {
					of = algorithms.Limit{Events: min(l.events, algorithms.MaxSlots), Lease: time.Minute}
				}
				if rules[i], err = store.NewRule(zones[i], a, of, 0); err != nil {
					return nil, err
				}
			}
			s, err := openStore(address, denyCache)
			if err != nil {
				return nil, err
			}
			taker := func() take { return takeAll(s, rules) }
			if leases {
				taker = func() take { return takeAndGiveBack(s, rules) }
			}
			return &limiter{taker: taker, close: s.Close}, nil
		},
	}
}

// openStore opens a store. Its timeout is as long as the peers' timeouts, so that no request fails on
// a busy machine.
func openStore(address string, denyCache time.Duration) (*redisstore.Store, error) {
	return redisstore.New(redisstore.Options{Address: address, Timeout: 3 * time.Second, DenyCache: denyCache})
}

// lending is this project's store, which charges keys that come often ahead.
func lending(name string) peer {
	return peer{
		name:  name,
		setup: "redisstore, default pool, lend",
		open: func(address string, l limit) (*limiter, error) {
			rules := make([]*store.Rule, l.zones)
			for i := range rules {
				var err error
				limit := algorithms.Limit{Events: l.events, Window: l.period}
				limit.Hold = algorithms.DefaultHold(algorithms.TokenBucket{}, limit)
				if rules[i], err = store.NewRule(zones[i], algorithms.TokenBucket{}, limit, 0); err != nil {
					return nil, err
				}
			}
			s, err := openStore(address, noDenyCache)
			if err != nil {
				return nil, err
			}
			return &limiter{taker: func() take { return takeAll(s, rules) }, close: s.Close}, nil
		},
	}
}

func takeAll(s store.Store, rules []*store.Rule) take {
	checks, decisions := make([]store.Check, len(rules)), make([]algorithms.Decision, len(rules))
	return func(ctx context.Context, client int) (bool, error) {
		for i, rule := range rules {
			checks[i] = store.Check{Rule: rule, Key: clients[client], Cost: 1}
		}
		if err := s.Take(ctx, checks, decisions); err != nil {
			return false, err
		}
		return allowed(decisions), nil
	}
}

// holders numbers the goroutines that hold slots.
var holders atomic.Int64

// takeAndGiveBack holds a slot for no longer than the decision takes.
func takeAndGiveBack(s store.Store, rules []*store.Rule) take {
	checks, decisions := make([]store.Check, len(rules)), make([]algorithms.Decision, len(rules))
	holder, n := holders.Add(1), 0
	return func(ctx context.Context, client int) (bool, error) {
		n++
		hold := fmt.Sprintf("%d.%d", holder, n)
		for i, rule := range rules {
			checks[i] = store.Check{Rule: rule, Key: clients[client], Cost: 1, LeaseID: hold}
		}
		if err := s.Take(ctx, checks, decisions); err != nil || !allowed(decisions) {
			return false, err
		}
		for i := range checks {
			s.Adjust(store.Adjustment{Check: checks[i], At: decisions[i].Booked(), Turn: decisions[i].Turn(), Delta: -1})
		}
		return true, nil
	}
}

func allowed(decisions []algorithms.Decision) bool {
	for i := range decisions {
		if !decisions[i].Allowed {
			return false
		}
	}
	return true
}
