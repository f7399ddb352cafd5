package redisstore_test

import (
	"context"
	"time"

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

func newRedisSide(s *redisstore.Store) redisSide { return redisSide{storeSide{s.Direct()}, s} }

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

// aheadSide is the algorithms in Go, which charge ahead. The memory store never does.
type aheadSide struct {
	now, date func() int64
	keys      map[string]*aheadKey // by rule
}

// aheadKey is what a key has, and since when.
type aheadKey struct {
	state algorithms.State
	log   algorithms.Log
	since int64
}

func (s *aheadSide) key(r *store.Rule) (k *aheadKey, now int64, p algorithms.Params) {
	now = s.now()
	if k = s.keys[r.ID()]; k == nil {
		k = &aheadKey{since: now}
	}
	k.since = min(k.since, now)
	return k, now, r.At(s.date()).Params
}

func (s *aheadSide) take(_ rapid.TB, c store.Check) (d algorithms.Decision) {
	k, now, p := s.key(c.Rule)
	lasts := int64(0)
	if a, ok := c.Rule.Algorithm().(algorithms.SlidingWindowLog); ok {
		if d = a.Decide(&k.log, p, now, c.Cost); d.Allowed {
			if d.Units, lasts = a.Record(&k.log, p, now, c.Cost, c.Ahead); d.Units > 0 && c.Cost > 0 {
				d.Ahead = time.Duration(lasts) * time.Microsecond
			}
		}
	} else {
		a := c.Rule.Algorithm().(algorithms.Counter)
		if k.state, d = a.Take(k.state, p, now, c.Cost); d.Allowed && c.Ahead > 0 {
			k.state, d.Units, lasts = a.Ahead(k.state, p, now, c.Cost, c.Ahead)
		}
	}
	if d.At = now; d.Units > 0 {
		d.Lasts = time.Duration(lasts) * time.Microsecond
	}
	if d.Allowed && c.Cost+d.Units > 0 {
		s.keys[c.Rule.ID()] = k
	}
	return d
}

func (s *aheadSide) adjust(_ rapid.TB, a store.Adjustment) {
	k, now, p := s.key(a.Rule)
	if r, ok := a.Rule.Algorithm().(algorithms.Recorder); ok {
		r.Adjust(&k.log, p, now, a.At, a.Delta)
	} else if !a.OfBefore(k.since) {
		before := k.state
		k.state = a.Rule.Algorithm().(algorithms.Counter).Adjust(k.state, p, now, a.At, a.Turn, a.Delta)
		if k.state == before {
			return
		}
	}
	s.keys[a.Rule.ID()] = k
}

func (s *aheadSide) reset(_ rapid.TB, r *store.Rule, _ string) { delete(s.keys, r.ID()) }

func (s *aheadSide) renew(t rapid.TB, _ store.Check) { t.Fatalf("nothing to renew") }
