//go:build deep

package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// lentFleet is some stores that hold parts of the limit of key k.
type lentFleet struct {
	server *redistest.Server
	stores []*redisstore.Store
	check  store.Check
	passed int64
}

// startLent has two stores hold parts of a limit for a minute, if nobody tells them otherwise: the period is long.
func startLent(t *testing.T, algorithm string, rules *store.KeyRules) *lentFleet {
	t.Helper()
	f := &lentFleet{server: redistest.Start(t)}
	rule := lendingRule(t, "z", algorithm, algorithms.Limit{Events: 1000, Window: 1000 * time.Hour}, 10*time.Second)
	f.check = store.Check{Rule: rule, Key: "k", Cost: 1, KeyRules: rules}
	for range 2 {
		s := open(t, redisstore.Options{Address: f.server.Addr()})
		f.stores = append(f.stores, s)
		f.passed += f.ask(t, s, 60)
		if s.Stats().Lent["z"] == 0 {
			t.Fatal("nothing is lent")
		}
	}
	if f.passed != 120 {
		t.Fatalf("%d of 120 passed", f.passed)
	}
	return f
}

// ask makes requests, and returns how many pass.
func (f *lentFleet) ask(t *testing.T, s *redisstore.Store, n int) int64 {
	t.Helper()
	return floodAll(t, []*redisstore.Store{s}, n, 1, func() []store.Check { return []store.Check{f.check} })
}

// lent returns what all stores hold.
func (f *lentFleet) lent() (n int64) {
	for _, s := range f.stores {
		n += s.Stats().Lent["z"]
	}
	return n
}

// noticed waits until no store holds anything, as soon as a second after a change.
func (f *lentFleet) noticed(t *testing.T) {
	t.Helper()
	began := time.Now()
	patient.Until(t, "all stores notice", func() bool { return f.lent() == 0 })
	if took := time.Since(began); took > time.Second && patient.Idle() {
		t.Errorf("noticed after %v", took)
	}
}

func (f *lentFleet) set(t *testing.T, o store.Override) {
	t.Helper()
	if err := f.stores[0].Set(context.Background(), f.check.Rule, "k", o); err != nil {
		t.Fatal(err)
	}
}

// TestLendOverride: an override holds at all instances in a second, also for what was lent before. Until
// then no more is admitted than the larger of the two limits. A bucket with another rate counts by itself, as it does
// where nothing is lent: then that is what was held, and the new limit.
func TestLendOverride(t *testing.T) {
	t.Parallel()
	limit := func(n int64) store.Override {
		return store.Override{Kind: store.KindLimit, Limit: algorithms.Limit{Events: n}}
	}
	for _, algorithm := range []string{"fixed_window", "sliding_window_log", "token_bucket"} {
		for name, c := range map[string]struct {
			override    store.Override
			least, most int64 // that pass in all
		}{
			"lowered": {limit(300), 120, 1000},
			"raised":  {limit(2000), 2000, 2000},
			"banned":  {store.Override{Kind: store.KindBanned}, 120, 1000},
		} {
			t.Run(algorithm+" "+name, func(t *testing.T) {
				t.Parallel()
				f := startLent(t, algorithm, &store.KeyRules{Overrides: true})
				if algorithm == "token_bucket" && name == "raised" {
					c.most += f.passed + f.lent() + 10 // which come back meanwhile
				}
				f.set(t, c.override)
				atOnce := f.ask(t, f.stores[0], 1) // it knows at once
				if name == "banned" && atOnce != 0 {
					t.Errorf("a request passes where the key was banned")
				}
				f.passed += atOnce + f.ask(t, f.stores[1], 500)
				f.noticed(t)
				if name == "lowered" || name == "banned" {
					for _, s := range f.stores {
						if f.passed >= 300 || name == "banned" {
							if n := f.ask(t, s, 5); n != 0 {
								t.Errorf("%d pass later", n)
							}
						}
					}
				}
				f.passed += f.ask(t, f.stores[0], 1500) + f.ask(t, f.stores[1], 1500)
				t.Logf("%d passed", f.passed)
				if f.passed > c.most || f.passed < c.least {
					t.Errorf("%d passed, want %d to %d", f.passed, c.least, c.most)
				}
			})
		}
	}
}

// TestLendExempt: the requests of an exempt key pass, are not counted, and nothing is lent for them. When
// the exemption ends, the limit holds again.
func TestLendExempt(t *testing.T) {
	t.Parallel()
	f := startLent(t, "fixed_window", &store.KeyRules{Overrides: true})
	f.set(t, store.Override{Kind: store.KindExempt})
	f.noticed(t)
	for _, s := range f.stores {
		if n := f.ask(t, s, 1500); n != 1500 {
			t.Errorf("%d of 1500 pass", n)
		}
	}
	if n := f.lent(); n != 0 {
		t.Errorf("%d lent", n)
	}
	if err := f.stores[1].Clear(context.Background(), f.check.Rule, "k"); err != nil {
		t.Fatal(err)
	}
	patient.Until(t, "it is not exempt", func() bool {
		var d [1]algorithms.Decision
		if err := f.stores[0].Take(context.Background(), []store.Check{f.check}, d[:]); err != nil {
			t.Fatal(err)
		}
		if d[0].Allowed && !d[0].Exempt {
			f.passed++
		}
		return !d[0].Exempt
	})
	f.passed += f.ask(t, f.stores[0], 1000) + f.ask(t, f.stores[1], 1000)
	if f.passed > 1000 {
		t.Errorf("%d were charged and passed", f.passed)
	}
}

// TestLendEarnedBan: refusals at all instances count towards a ban, without an exception, and the ban holds at
// all of them, also for what was lent before.
func TestLendEarnedBan(t *testing.T) {
	t.Parallel()
	const after = 40
	ban := &store.Ban{For: time.Hour, After: after, Within: time.Hour}
	f := startLent(t, "fixed_window", &store.KeyRules{Ban: ban})
	refused, begun := 0, 0
	for i := 0; begun == 0; i++ {
		var d [1]algorithms.Decision
		if err := f.stores[i%2].Take(context.Background(), []store.Check{f.check}, d[:]); err != nil {
			t.Fatal(err)
		}
		if d[0].Allowed {
			f.passed++
		} else {
			refused++
		}
		if d[0].BanBegins {
			begun++
		}
		if refused > after {
			t.Fatalf("%d refusals, and no ban", refused)
		}
	}
	if refused != after || f.passed > 1000 {
		t.Errorf("the ban began with refusal %d, %d passed", refused, f.passed)
	}
	f.noticed(t)
	for _, s := range f.stores {
		before := s.Stats().Calls
		for range 50 {
			var d [1]algorithms.Decision
			if err := s.Take(context.Background(), []store.Check{f.check}, d[:]); err != nil {
				t.Fatal(err)
			}
			if d[0].Allowed || !d[0].Banned || d[0].BanBegins {
				t.Fatalf("a decision on a banned key: %+v", d[0])
			}
		}
		if n := s.Stats().Calls - before; n > 10 && patient.Idle() {
			t.Errorf("%d calls for 50 requests of a banned key", n)
		}
	}
	if err := f.stores[1].Unban(context.Background(), f.check.Rule, "k"); err != nil {
		t.Fatal(err)
	}
	for i, s := range f.stores {
		patient.Until(t, "the ban is over", func() bool {
			var d [1]algorithms.Decision
			if err := s.Take(context.Background(), []store.Check{f.check}, d[:]); err != nil {
				t.Fatal(err)
			}
			if d[0].Banned && i == 1 {
				t.Error("banned where the ban was lifted")
			}
			return !d[0].Banned
		})
	}
}

// TestLendResetOfAFleet: after a reset, other instances give up in a second what they hold. At most that much is
// admitted on top, once.
func TestLendResetOfAFleet(t *testing.T) {
	t.Parallel()
	f := startLent(t, "fixed_window", nil)
	held := f.stores[1].Stats().Lent["z"]
	if err := f.stores[0].Reset(context.Background(), f.check.Rule, "k"); err != nil {
		t.Fatal(err)
	}
	if n := f.stores[0].Stats().Lent["z"]; n != 0 {
		t.Errorf("%d are lent where the key was reset", n)
	}
	old := f.ask(t, f.stores[1], int(held/2))
	patient.Until(t, "the other notices", func() bool { return f.stores[1].Stats().Lent["z"] == 0 })
	f.passed = f.ask(t, f.stores[0], 1500) + f.ask(t, f.stores[1], 1500)
	if f.passed > 1000 || f.passed+old > 1000+held {
		t.Errorf("%d of %d passed by what was lent, and %d after it", old, held, f.passed)
	}
}

// TestLendDryRun: a check that is decided by itself is decided by what is lent, too, and charged whatever the
// others of its request decide.
func TestLendDryRun(t *testing.T) {
	t.Parallel()
	f := startLent(t, "fixed_window", nil)
	tried := f.check
	tried.Independent = true
	narrow := store.Check{Rule: lendingRule(t, "narrow", "fixed_window", algorithms.Limit{Events: 400, Window: 1000 * time.Hour}, 10*time.Second), Key: "k", Cost: 1}
	var all, allowed int64
	before := calls(t, f.server)
	for i := range 1200 {
		var d [2]algorithms.Decision
		if err := f.stores[i%2].Take(context.Background(), []store.Check{narrow, tried}, d[:]); err != nil {
			t.Fatal(err)
		}
		if d[0].Allowed {
			all++
		}
		if d[1].Allowed {
			allowed++
		}
	}
	if all > 400 || all < 390 || allowed > 880 || allowed < 860 {
		t.Errorf("%d of at most 400 passed, %d of at most 880 would have", all, allowed)
	}
	if made := calls(t, f.server) - before; made > 600 {
		t.Errorf("%d calls for 1200 requests", made)
	}
}

// TestLendOverrideAllOrNothing: under an override, too, a request is charged in all its zones or in none.
func TestLendOverrideAllOrNothing(t *testing.T) {
	t.Parallel()
	for name, override := range map[string]store.Override{
		"the same state": {Kind: store.KindLimit, Limit: algorithms.Limit{Events: 500}},
		"another state":  {Kind: store.KindLimit, Limit: algorithms.Limit{Events: 500, Window: 500 * time.Hour}},
		"exempt":         {Kind: store.KindExempt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startLent(t, "fixed_window", &store.KeyRules{Overrides: true})
			a, err := algorithms.Get("fixed_window")
			if err != nil {
				t.Fatal(err)
			}
			narrow, err := store.NewRule("narrow", a, algorithms.Limit{Events: 100, Window: 1000 * time.Hour}, 0)
			if err != nil {
				t.Fatal(err)
			}
			f.set(t, override)
			f.noticed(t)
			passed := floodAll(t, f.stores, 300, 4, func() []store.Check { return []store.Check{f.check, {Rule: narrow, Key: "k", Cost: 1}} })
			if passed != 100 {
				t.Errorf("%d passed, want 100", passed)
			}
			for _, s := range f.stores {
				s.Flush()
			}
			want := map[string]int64{"the same state": f.passed + 100, "another state": 100}[name]
			var d [1]algorithms.Decision
			peek := f.check
			peek.Peek = true
			patient.Until(t, "what was charged to be given back", func() bool {
				if err := f.stores[0].Take(context.Background(), []store.Check{peek}, d[:]); err != nil {
					t.Fatal(err)
				}
				return d[0].Quota-d[0].Remaining == want
			})
		})
	}
}

// TestLendNegativeCost: such a cost is an error, also if this process holds something of the key.
func TestLendNegativeCost(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redisstore.Options{Address: server.Addr()})
	rule := lendingRule(t, "z", "token_bucket", algorithms.Limit{Events: 1000, Window: 24 * time.Hour}, 10*time.Second)
	floodAll(t, []*redisstore.Store{s}, 10, 1, func() []store.Check { return []store.Check{{Rule: rule, Key: "k", Cost: 1}} })
	var d [1]algorithms.Decision
	if err := s.Take(context.Background(), []store.Check{{Rule: rule, Key: "k", Cost: -5}}, d[:]); err == nil {
		t.Errorf("a cost of -5 was decided: %+v", d[0])
	}
}
