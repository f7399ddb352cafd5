package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// ask takes a decision and describes it.
func ask(t testing.TB, s store.Store, checks ...store.Check) []algorithms.Decision {
	t.Helper()
	decisions := make([]algorithms.Decision, len(checks))
	if err := s.Take(context.Background(), checks, decisions); err != nil {
		t.Fatal(err)
	}
	return decisions
}

// remembers returns the options of a store that remembers refusals for long.
func remembers(server *redistest.Server) redisstore.Options {
	o := at(server)
	o.DenyCache = time.Minute
	return o
}

// TestRefusalsAreRemembered: a refusal is remembered, and a ban, until the key is charged, reset or unbanned. Redis answers
// a peek all the same. Package refusals has what else must be asked again.
func TestRefusalsAreRemembered(t *testing.T) {
	t.Parallel()
	s := open(t, remembers(redistest.Shared(t)))
	asks := func(name string, asked bool, c store.Check) algorithms.Decision {
		t.Helper()
		before := s.Stats().DenyHits
		d := ask(t, s, c)[0]
		if was := s.Stats().DenyHits == before; was != asked {
			t.Errorf("%s: Redis was asked: %v, and says %+v", name, was, d)
		}
		return d
	}
	rule := storetest.Rule(t, "bucket", "token_bucket", algorithms.Limit{Events: 10, Window: time.Hour})
	large := store.Check{Rule: rule, Key: "a", Cost: 5}
	charged := asks("8 of 10", true, store.Check{Rule: rule, Key: "a", Cost: 8})
	asks("too much", true, large)
	asks("too much again, while less may pass", true, large)
	asks("the last 2", true, store.Check{Rule: rule, Key: "a", Cost: 2})
	asks("too much, and what its wait is", true, large)
	asks("too much again", false, large)
	peek := large
	peek.Peek = true
	asks("a peek", true, peek)
	s.Adjust(store.Adjustment{Check: large, At: charged.Booked(), Turn: charged.Turn(), Delta: 10})
	s.Flush()
	if d := asks("after a late cost", true, large); d.RetryAfter < time.Hour {
		t.Errorf("the wait is that before the late cost: %+v", d)
	}
	if err := s.Reset(t.Context(), rule, "a"); err != nil {
		t.Fatal(err)
	}
	if d := asks("after a reset", true, large); !d.Allowed {
		t.Errorf("it was reset: %+v", d)
	}

	banned := banning(t, 2)
	asks("the first", true, banned)
	asks("a refusal that counts", true, banned)
	if d := asks("the last of them", true, banned); !d.BanBegins {
		t.Errorf("no ban begins: %+v", d)
	}
	if d := asks("banned", false, banned); !d.Banned || d.BanBegins {
		t.Errorf("%+v", d)
	}
	if err := s.Unban(t.Context(), banned.Rule, store.Selector{Key: banned.Key}); err != nil {
		t.Fatal(err)
	}
	if d := asks("unbanned", true, banned); d.Banned {
		t.Errorf("%+v", d)
	}
}
