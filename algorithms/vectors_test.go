package algorithms_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/model/vectors"
)

// TestGoldenVectors plays the scenarios in testdata/vectors.
func TestGoldenVectors(t *testing.T) {
	for _, f := range vectors.Load(t, filepath.Join("..", "testdata", "vectors")) {
		for _, s := range f.Scenarios {
			t.Run(f.Name+"/"+s.Title, func(t *testing.T) { s.Play(t, newPlayer(t, f.Algorithm)) })
		}
	}
}

// player is one key, decided by the algorithms in Go.
type player struct {
	testing.TB
	algorithm algorithms.Algorithm
	states    map[string]*key // by family
	turns     map[string]int64
}

func newPlayer(t testing.TB, name string) *player {
	return &player{TB: t, algorithm: newKey(t, name).algorithm, states: make(map[string]*key), turns: make(map[string]int64)}
}

// stateFor returns what the key remembers of the limit's family.
func (p *player) stateFor(l algorithms.Limit) *key {
	family := p.algorithm.Family(l)
	if p.states[family] == nil {
		p.states[family] = &key{algorithm: p.algorithm}
	}
	return p.states[family]
}

func (p *player) params(l algorithms.Limit, now int64) algorithms.Params {
	params, err := p.algorithm.Prepare(l)
	if err != nil {
		p.Fatal(err)
	}
	if dated, ok := p.algorithm.(algorithms.FixedWindow); ok && l.Calendar != 0 {
		params, _, _ = dated.PrepareAt(l, time.UnixMicro(now))
	}
	return params
}

// Take implements [vectors.Key].
func (p *player) Take(l algorithms.Limit, now, cost int64, name string) (d algorithms.Decision) {
	d = p.stateFor(l).ask(p.params(l, now), now, cost, 0, name)
	d.At = now
	p.turns[name] = d.Turn()
	return d
}

// Ahead implements [vectors.Key].
func (p *player) Ahead(l algorithms.Limit, now, want int64, name string) (units int64, lasts time.Duration) {
	p.turns[name] = now
	d := p.stateFor(l).ask(p.params(l, now), now, 0, want, name)
	return d.Units, d.Lasts
}

// Renew implements [vectors.Key].
func (p *player) Renew(l algorithms.Limit, now, cost int64, name string) {
	p.algorithm.(algorithms.Leaser).Lease(&p.stateFor(l).leases, p.params(l, now), now, cost, name)
}

// Adjust implements [vectors.Key].
func (p *player) Adjust(l algorithms.Limit, now, at, delta int64, name string) {
	p.stateFor(l).adjust(p.params(l, now), now, at, p.turns[name], delta, name)
}

// FuzzTake gives any limit, any state and any request to every algorithm. The state may be
// damaged. Nothing may panic or overflow, and no more may be allowed than remains.
func FuzzTake(f *testing.F) {
	now := start.UnixMicro()
	f.Add(int64(10), int64(1e6), int64(0), now, int64(3), now, now, int64(1))
	f.Add(int64(1), int64(1000), int64(5), now, int64(5), now+1, now, int64(5))
	f.Add(algorithms.MaxEvents, algorithms.MaxWindow.Microseconds(), algorithms.MaxEvents, int64(0), algorithms.MaxEvents, now, now, algorithms.MaxEvents)
	f.Add(int64(999_999_937), int64(365*86400e6), int64(0), now-86400e6, int64(1e9), now, now, int64(1))
	f.Add(int64(0), int64(1e6), int64(7), int64(-1), int64(-1), int64(-1), now, int64(1))
	f.Add(int64(7), int64(1e6), int64(1), int64(1<<62), int64(1<<62), int64(1<<62), now, int64(1))
	f.Add(int64(7), int64(1e6), int64(1), int64(0), int64(1<<52), now, int64(0), int64(0))
	f.Add(int64(60), int64(1029), int64(5), now, int64(5), now+49, now, int64(1<<60))
	f.Fuzz(func(t *testing.T, events, window, burst, s0, s1, s2, now, cost int64) {
		// Callers guarantee a clock between 1970 and 2100, and a cost of at least 0.
		now, cost = now&(1<<52-1), cost&(1<<62-1)
		limit := algorithms.Limit{Events: events, Window: time.Duration(window%(1<<50)) * time.Microsecond, Burst: burst}
		for _, name := range algorithms.Names() {
			k := newKey(t, name)
			params, err := k.algorithm.Prepare(limit)
			if err != nil {
				continue
			}
			k.state = algorithms.State{s0, s1, s2}
			for i, at := range []int64{s0 & (1<<40 - 1), s1 & (1<<52 - 1), s2 & (1<<52 - 1)} {
				if at >= k.log.Newest() {
					k.log.Append(at, 1+int64(i)*(s1&7))
				}
			}
			quota := k.take(params, now, 0).Quota
			before := k.take(params, now, 0)
			d := k.take(params, now, cost)
			check(t, name, d, quota)
			switch {
			case d.Allowed && d.Remaining != before.Remaining-cost:
				t.Fatalf("%s: %d of %d taken, %d left", name, cost, before.Remaining, d.Remaining)
			case d.Allowed != (cost <= before.Remaining):
				t.Fatalf("%s: cost %d with %d left: %+v", name, cost, before.Remaining, d)
			case !d.Allowed && d.Remaining != before.Remaining:
				t.Fatalf("%s: a refusal took something: %+v, then %+v", name, before, d)
			case !d.Allowed && d.RetryAfter == algorithms.Never && cost <= quota:
				t.Fatalf("%s: cost %d of %d is refused forever", name, cost, quota)
			}
			if slices.ContainsFunc(k.state[:], func(n int64) bool { return n > now }) || k.log.Newest() > now {
				continue // while it is ahead of the clock, a state that nobody writes says only what holds now: see ahead.go
			}
			if d.NextAfter > 0 {
				peek := func(wait time.Duration) int64 { return k.take(params, now+wait.Microseconds(), 0).Remaining }
				if early, then := peek(d.NextAfter-time.Microsecond), peek(d.NextAfter); early != d.Remaining || then <= d.Remaining {
					t.Fatalf("%s: %d remain a microsecond before next, %d at it: %+v", name, early, then, d)
				}
				if early, then := peek(d.ResetAfter-time.Microsecond), peek(d.ResetAfter); early == quota || then != quota {
					t.Fatalf("%s: %d remain a microsecond before reset, %d at it: %+v", name, early, then, d)
				}
			}
			if d.Allowed || d.RetryAfter == algorithms.Never {
				continue
			}
			if early := k.take(params, now+d.RetryAfter.Microseconds()-1, cost); early.Allowed {
				t.Fatalf("%s: allowed a microsecond before %v: %+v", name, d.RetryAfter, early)
			}
			if then := k.take(params, now+d.RetryAfter.Microseconds(), cost); !then.Allowed {
				t.Fatalf("%s: refused after %v: %+v", name, d.RetryAfter, then)
			}
		}
	})
}

// check checks what holds for every decision.
func check(t *testing.T, name string, d algorithms.Decision, quota int64) {
	t.Helper()
	if d.Quota != quota || d.Remaining < 0 || d.Remaining > quota || d.NextAfter < 0 || d.ResetAfter < d.NextAfter ||
		d.Allowed != (d.RetryAfter == 0) || d.RetryAfter < 0 || d.Delay != 0 ||
		(d.Remaining == quota) != (d.ResetAfter == 0) {
		t.Fatalf("%s: impossible with quota %d: %+v", name, quota, d)
	}
}
