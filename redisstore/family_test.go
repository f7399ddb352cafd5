package redisstore_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestFamilies: which limits share a state, and what its key looks like. The doc comment of the
// package has some of these keys.
func TestFamilies(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	documented, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, redisstore.Options{})
	for _, c := range []struct {
		algorithm, want string
		limit           algorithms.Limit
	}{
		{"sliding_window_log", "1m", per(9, time.Minute)},
		{"sliding_window_log", "1m", per(5, 60*time.Second)},
		{"sliding_window_log", "1m30s", per(5, 90*time.Second)},
		{"sliding_window_counter", "1d", per(5, 24*time.Hour)},
		{"sliding_window_counter", "1.5ms", per(5, 1500*time.Microsecond)},
		{"fixed_window", "250ms", per(5, 250*time.Millisecond)},
		{"fixed_window", "1h-first_request", algorithms.Limit{Events: 5, Window: time.Hour, Align: algorithms.AlignFirstRequest}},
		{"fixed_window", "day-Europe%2FBerlin", algorithms.Limit{Events: 5, Calendar: algorithms.Day, Location: berlin}},
		{"fixed_window", "month-UTC", algorithms.Limit{Events: 5, Calendar: algorithms.Month}},
		{"token_bucket", "1per12s", algorithms.Limit{Events: 5, Window: time.Minute, Burst: 10}},
		{"token_bucket", "1per12s", per(300, time.Hour)},
		{"token_bucket", "7per1m", per(7, time.Minute)},
		{"token_bucket", "5per1m-interval", algorithms.Limit{Events: 5, Window: time.Minute, Refill: algorithms.RefillInterval}},
		{"token_bucket", "0per1m", per(0, time.Minute)},
		{"leaky_bucket", "1per12s", per(5, time.Minute)},
		{"leaky_bucket", "1per12s-queue", algorithms.Limit{Events: 5, Window: time.Minute, Mode: algorithms.ModeQueue, MaxWait: time.Second}},
	} {
		rule := storetest.Rule(t, "zone", c.algorithm, c.limit)
		want := "rl:{k}:zone:" + c.algorithm + ".4:" + c.want
		if got := s.Key(rule, "k"); got != want {
			t.Errorf("%+v: got %s, want %s", c.limit, got, want)
		}
	}
	if got := s.Key(storetest.Rule(t, "zone", "concurrency", algorithms.Limit{Events: 5, Lease: time.Hour}), "k"); got != "rl:{k}:zone:concurrency.4" {
		t.Errorf("slots are at %s", got)
	}
	words := strings.FieldsFunc(string(documented), func(r rune) bool { return strings.ContainsRune(" \t\n,", r) })
	for _, family := range []string{"1m", "1m30s", "1d", "1h-first_request", "day-Europe%2FBerlin", "month-UTC", "1per12s", "5per1m-interval", "1per12s-queue"} {
		if !slices.Contains(words, family) {
			t.Errorf("doc.go does not name the family %s", family)
		}
	}
}

func per(events int64, window time.Duration) algorithms.Limit {
	return algorithms.Limit{Events: events, Window: window}
}

// TestOverridesOfOlderVersions: an override from before overrides had families holds as it did. It
// shares the state of the zone's limit if they differ only in how much fits, and has a state of
// its own otherwise.
func TestOverridesOfOlderVersions(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	s := open(t, asking(server))
	ctx := context.Background()
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 2, Window: time.Hour, Align: algorithms.AlignFirstRequest})
	for key, c := range map[string]struct {
		window time.Duration
		passed int
	}{"like the zone": {time.Hour, 3}, "other": {2 * time.Hour, 5}} {
		limit := algorithms.Limit{Events: 5, Window: c.window, Align: algorithms.AlignFirstRequest}
		own, err := rule.PrepareOverride(store.Override{Kind: store.KindLimit, Limit: limit, Note: "old"})
		if err != nil {
			t.Fatal(err)
		}
		check := store.Check{Rule: rule, Key: key, Cost: 1, KeyRules: &store.KeyRules{Overrides: true}}
		ask(t, s, check)
		ask(t, s, check)
		kind, tail := own.Wire()
		head, family := len("fixed_window")+1+1+48, store.Escape(rule.Algorithm().Family(limit))+"\x00"
		if !strings.HasPrefix(tail[head:], family) {
			t.Fatalf("no family in %q", tail)
		}
		value := string([]byte{kind}) + strings.Repeat("\x00", 8) + tail[:head] + tail[head+len(family):]
		name := server.Prefix() + ":{" + store.Escape(key) + "}:zone:setting.1"
		if err := server.Admin().Set(ctx, name, value, 0).Err(); err != nil {
			t.Fatal(err)
		}
		if got, err := s.GetRule(ctx, rule, store.Selector{Key: key}); err != nil || got.Limit != limit || got.Note != "old" {
			t.Errorf("%s: read as %+v (%v)", key, got, err)
		}
		passed := 0
		for range 9 {
			if d := ask(t, s, check)[0]; d.Allowed {
				if passed++; d.Override == "" || d.Quota != 5 {
					t.Errorf("%s: %+v", key, d)
				}
			}
		}
		if passed != c.passed {
			t.Errorf("%s: %d passed after 2 under the zone's limit, want %d", key, passed, c.passed)
		}
	}
}
