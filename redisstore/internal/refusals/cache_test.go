package refusals_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer/layertest"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/refusals"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

const (
	maxTTL = time.Second
	recent = 50 * time.Millisecond

	recentTTL = 10 // times maxTTL
)

// cache is a cache with a check that it is asked about.
type cache struct {
	*refusals.Cache
	check    store.Check
	prepared *store.Prepared
}

// newCache returns an empty cache. It must be made in the bubble of a test.
func newCache(t *testing.T, algorithm string) *cache {
	rule := storetest.Rule(t, "zone", algorithm, storetest.Limit(algorithm, 10, time.Hour))
	return &cache{refusals.NewCache(maxTTL, recent), store.Check{Rule: rule, Key: "client"}, rule.At(0)}
}

// put remembers that a cost was decided now.
func (c *cache) put(cost int64, d algorithms.Decision) {
	c.check.Cost = cost
	c.Put(&c.check, c.prepared, d, d.Allowed, c.Now(), c.Now())
}

func (c *cache) get(cost int64) (d algorithms.Decision, ok bool) {
	c.check.Cost = cost
	return c.Get(&c.check, c.prepared, c.Now())
}

// refused is a refusal for a while.
func refused(wait time.Duration) algorithms.Decision {
	return algorithms.Decision{Quota: 10, RetryAfter: wait, NextAfter: wait, ResetAfter: 2 * wait}
}

// TestCosts: a refusal answers for the costs whose wait it knows.
func TestCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, "token_bucket")
		c.put(5, refused(time.Minute))
		for cost, want := range map[int64]time.Duration{0: 0, 4: 0, 5: time.Minute, 6: 0, 10: 0, 11: algorithms.Never} {
			if d, ok := c.get(cost); ok != (want != 0) || d.RetryAfter != want || d.Allowed {
				t.Errorf("cost %d: %+v, %v", cost, d, ok)
			}
		}
		// A request without an answer, also one that can never pass.
		for cost, want := range map[int64]time.Duration{5: time.Minute, 11: algorithms.Never} {
			c.check.Cost = cost
			if d, ok := c.Recent(&c.check, c.prepared, c.Now()); !ok || d.RetryAfter != want {
				t.Errorf("cost %d without an answer: %+v, %v", cost, d, ok)
			}
		}
	})
}

// TestSomethingLeft: while a smaller cost may pass, a larger one that is refused asks each time, unless it can never pass or is 1.
func TestSomethingLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := refused(time.Minute)
		d.Remaining = 4
		for cost, want := range map[int64]bool{1: true, 5: false, 11: true} {
			c := newCache(t, "token_bucket")
			c.put(cost, d)
			if d, ok := c.get(cost); ok != want {
				t.Errorf("cost %d: %+v, %v", cost, d, ok)
			}
			if d, ok := c.Recent(&c.check, c.prepared, c.Now()); !ok {
				t.Errorf("cost %d without an answer: %+v", cost, d)
			}
		}
	})
}

// TestChargesMeanwhile: a charge after a refusal shows that something was given back, and one before it shows nothing.
func TestChargesMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for at, want := range map[int64]bool{1: true, 2: true, 3: false} {
			c := newCache(t, "token_bucket")
			d := refused(time.Minute)
			d.At = 2
			c.put(5, d)
			c.put(1, algorithms.Decision{Allowed: true, Quota: 10, Remaining: 3, NextAfter: time.Minute, ResetAfter: time.Hour, At: at})
			if d, ok := c.get(5); ok != want {
				t.Errorf("charged at %d: %+v, %v", at, d, ok)
			}
		}
	})
}

// TestTimes: a refusal is told with what is left of its wait, for maxTTL at most, and for a
// moment longer to requests that got no answer.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, "token_bucket")
		c.put(5, refused(time.Minute))
		time.Sleep(maxTTL - 1)
		if d, ok := c.get(5); !ok || d.RetryAfter != time.Minute-maxTTL+1 || d.At != (maxTTL-1).Microseconds() {
			t.Errorf("just before it is over: %+v, %v", d, ok)
		}
		time.Sleep(time.Nanosecond)
		if d, ok := c.get(5); ok {
			t.Errorf("when it is over: %+v", d)
		}
		if d, ok := c.Recent(&c.check, c.prepared, c.Now()); !ok || d.RetryAfter != time.Minute-maxTTL {
			t.Errorf("without an answer: %+v, %v", d, ok)
		}
		time.Sleep((recentTTL - 1) * maxTTL)
		if d, ok := c.Recent(&c.check, c.prepared, c.Now()); !ok || d.RetryAfter != time.Minute-recentTTL*maxTTL {
			t.Errorf("without an answer, later: %+v, %v", d, ok)
		}
		time.Sleep(time.Nanosecond)
		if d, ok := c.Recent(&c.check, c.prepared, c.Now()); ok {
			t.Errorf("without an answer, too late: %+v", d)
		}
		c.put(5, refused(maxTTL/2))
		time.Sleep(maxTTL + recent + 1)
		if d, ok := c.Recent(&c.check, c.prepared, c.Now()); ok {
			t.Errorf("without an answer, long after a short wait: %+v", d)
		}
	})
}

// TestOnlyWithoutAnswer: the refusals of zones whose every request has to ask are known to requests that get no
// answer, and to no other, until one may pass.
func TestOnlyWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		banned := refused(time.Minute)
		banned.Banned, banned.BanBegins = true, true
		for name, c := range map[string]struct {
			algorithm string
			rules     *store.KeyRules
			decision  algorithms.Decision
		}{
			"overrides":             {"token_bucket", &store.KeyRules{Overrides: true}, refused(time.Minute)},
			"overrides, and banned": {"token_bucket", &store.KeyRules{Overrides: true, Ban: &store.Ban{}}, banned},
			"bans":                  {"token_bucket", &store.KeyRules{Ban: &store.Ban{}}, refused(time.Minute)},
			"slots":                 {"concurrency", nil, refused(time.Minute)},
		} {
			for end, over := range map[string]func(c *cache){
				"it may pass": func(c *cache) { c.put(1, algorithms.Decision{Allowed: true, Quota: 10, Remaining: 4}) },
				"given back":  func(c *cache) { c.Adjusted(&store.Adjustment{Check: c.check, Delta: -1}) },
			} {
				kept := newCache(t, c.algorithm)
				kept.check.KeyRules = c.rules
				kept.put(1, c.decision)
				time.Sleep(maxTTL / 2)
				if d, ok := kept.get(1); ok {
					t.Errorf("%s: %+v", name, d)
				}
				if d, ok := kept.Recent(&kept.check, kept.prepared, kept.Now()); !ok || d.Allowed || d.BanBegins || d.Banned != c.decision.Banned {
					t.Errorf("%s, without an answer: %+v, %v", name, d, ok)
				}
				over(kept)
				if d, ok := kept.Recent(&kept.check, kept.prepared, kept.Now()); ok || kept.Size() != 0 {
					t.Errorf("%s, %s: %+v", name, end, d)
				}
			}
		}
	})
}

// TestLimitsOfAFamily: what is charged to a key makes its waits longer under the other limits that count in the same
// state, and a refund shorter. The last refusal is remembered. Refusals of other keys, and those that are bans, still hold.
func TestLimitsOfAFamily(t *testing.T) {
	allowed := algorithms.Decision{Allowed: true, Quota: 20, Remaining: 9, NextAfter: time.Minute, ResetAfter: time.Hour}
	banned := refused(time.Minute)
	banned.Banned = true
	for name, change := range map[string]struct {
		do         func(c *cache)
		told       algorithms.Decision // before
		holds      bool
		unanswered bool // whether a request without an answer knows it
	}{
		"a charge":           {func(c *cache) { c.put(1, allowed) }, refused(time.Minute), false, true},
		"the last charge":    {func(c *cache) { c.put(9, algorithms.Decision{Allowed: true, Quota: 20, NextAfter: 1, ResetAfter: 1}) }, refused(time.Minute), false, false},
		"a late cost":        {func(c *cache) { c.Adjusted(&store.Adjustment{Check: c.check, Delta: 1}) }, refused(time.Minute), false, true},
		"a refund":           {func(c *cache) { c.Adjusted(&store.Adjustment{Check: c.check, Delta: -1}) }, refused(time.Minute), false, false},
		"a reset":            {func(c *cache) { c.DeleteKey(c.check.Rule, c.check.Key) }, refused(time.Minute), false, false},
		"a refusal":          {func(c *cache) { c.put(9, refused(time.Hour)) }, refused(time.Minute), false, false},
		"a ban":              {func(c *cache) { c.put(1, allowed) }, banned, true, true},
		"nothing is charged": {func(c *cache) { c.Put(&c.check, c.prepared, allowed, false, c.Now(), c.Now()) }, refused(time.Minute), true, true},
		"another key": {func(c *cache) {
			c.check.Key = "other"
			c.put(1, allowed)
		}, refused(time.Minute), true, true},
		"another window": {func(c *cache) {
			c.check.Rule = storetest.Rule(t, "zone", "sliding_window_log", algorithms.Limit{Events: 20, Window: time.Minute})
			c.put(1, allowed)
		}, refused(time.Minute), true, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCache(t, "sliding_window_log")
			if change.told.Banned {
				c.check.KeyRules = &store.KeyRules{Ban: new(store.Ban)}
			}
			c.put(5, change.told)
			other := &cache{c.Cache, c.check, nil}
			other.check.Rule = storetest.Rule(t, "zone", "sliding_window_log", algorithms.Limit{Events: 20, Window: time.Hour})
			other.prepared = other.check.Rule.At(0)
			change.do(other)
			if d, ok := c.get(5); ok != change.holds {
				t.Errorf("%s: %+v, %v", name, d, ok)
			}
			if d, ok := c.Recent(&c.check, c.prepared, c.Now()); ok != change.unanswered {
				t.Errorf("%s: without an answer: %+v, %v", name, d, ok)
			}
			if c.put(5, refused(2*time.Minute)); !change.told.Banned {
				if d, ok := c.get(5); !ok || d.RetryAfter != 2*time.Minute && !change.holds {
					t.Errorf("%s: when Redis has refused again: %+v, %v", name, d, ok)
				}
			}
		})
	}
}

// looking looks at what a refused request leaves out: of checks that would be refused for the sake of another, the
// layer tells nothing.
type looking struct {
	layer.Layer
	below *layertest.Below
}

func (l *looking) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	err := l.Layer.Take(ctx, checks, decisions)
	refused := slices.ContainsFunc(decisions, func(d algorithms.Decision) bool { return !d.Allowed })
	for i := range checks {
		if err == nil && refused && decisions[i] == (algorithms.Decision{Allowed: true}) {
			c := checks[i]
			c.Peek = true
			err = l.below.Take(ctx, []store.Check{c}, decisions[i:i+1])
		}
	}
	return err
}

// TestContract: with refusals that are remembered, answers are those of the contract of stores, waits included.
// After the clock of the store has gone back, that holds as soon as what is remembered has ended.
func TestContract(t *testing.T) {
	var hits uint64
	storetest.Run(t, func(t testing.TB) (store.Store, func(int64)) {
		if strings.HasSuffix(t.Name(), "/AsAlgorithms") {
			t.Skip("what is remembered tells no waits of other zones, and counts no refusals for their bans")
		}
		below, c := layertest.New(t), refusals.NewCache(maxTTL, recent)
		today := layer.Date(below.Now)
		var since atomic.Int64 // on the clock of the process
		c.SetClock(func() time.Duration { return time.Duration(since.Load()) })
		top := &refusals.Layer{Layer: below, Cache: c, Today: &today}
		t.Cleanup(func() { hits += c.Hits() })
		return &layertest.Store{Store: below.Store, Top: &looking{top, below}}, func(now int64) {
			passed := time.Duration(now-below.Now()) * time.Microsecond
			if passed < 0 {
				passed = maxTTL
			}
			since.Add(int64(passed))
			below.SetNow(now)
		}
	})
	if hits < 100 {
		t.Errorf("only %d requests were refused from memory", hits)
	}
}
