package redisstore_test

import (
	"context"

	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// side is one of several stores that must answer alike.
type side interface {
	take(t rapid.TB, c store.Check) algorithms.Decision
	adjust(t rapid.TB, r store.Adjustment)
	renew(t rapid.TB, c store.Check)
	reset(t rapid.TB, r *store.Rule, key string)
}

// storeSide is a store whose leases are renewed by the test alone.
type storeSide struct{ store.Store }

func (s storeSide) take(t rapid.TB, c store.Check) algorithms.Decision {
	var d [1]algorithms.Decision
	if err := s.Take(context.Background(), []store.Check{c}, d[:]); err != nil {
		t.Fatalf("%T: cost %d: %v", s.Store, c.Cost, err)
	}
	return d[0]
}

func (s storeSide) adjust(_ rapid.TB, r store.Adjustment) { s.Adjust(r) }

func (s storeSide) renew(t rapid.TB, _ store.Check) { t.Fatalf("%T renews when it wants to", s.Store) }

func (s storeSide) reset(t rapid.TB, r *store.Rule, key string) {
	if err := s.Reset(context.Background(), r, key); err != nil {
		t.Fatal(err)
	}
}

// redisSide waits until Redis has received an adjustment.
type redisSide struct {
	storeSide
	redis *redisstore.Store
}

func newRedisSide(s *redisstore.Store) redisSide { return redisSide{storeSide{s}, s} }

func (s redisSide) adjust(_ rapid.TB, r store.Adjustment) {
	s.Adjust(r)
	s.redis.Flush()
}

func (s redisSide) renew(t rapid.TB, c store.Check) {
	if err := s.redis.Renew(c); err != nil {
		t.Fatal(err)
	}
}

// leaseSide is the concurrency limit in Go without the memory store, which renews leases by a
// clock that tests do not set.
type leaseSide struct {
	now    func() int64
	leases algorithms.Leases
}

func (s *leaseSide) take(_ rapid.TB, c store.Check) algorithms.Decision {
	now, params := s.now(), c.Rule.At(0).Params
	d := algorithms.Concurrency{}.Decide(&s.leases, params, now, c.Cost)
	d.At = now
	if d.Allowed && c.Cost > 0 {
		algorithms.Concurrency{}.Lease(&s.leases, params, now, c.Cost, c.LeaseID)
	}
	return d
}

func (s *leaseSide) adjust(_ rapid.TB, r store.Adjustment) { s.leases.GiveBack(r.LeaseID, -r.Delta) }

func (s *leaseSide) reset(rapid.TB, *store.Rule, string) { s.leases = algorithms.Leases{} }

func (s *leaseSide) renew(_ rapid.TB, c store.Check) {
	algorithms.Concurrency{}.Lease(&s.leases, c.Rule.At(0).Params, s.now(), c.Cost, c.LeaseID)
}
