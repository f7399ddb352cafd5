package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// allOrNothing tests requests that several zones decide.
func allOrNothing(t *testing.T, open Open) {
	for _, first := range algorithms.Names() {
		for _, second := range algorithms.Names() {
			t.Run(first+"/"+second, func(t *testing.T) {
				b := start(t, open)
				narrow := Rule(t, "narrow", first, Limit(first, 3, time.Minute))
				wide := Rule(t, "wide", second, Limit(second, 10, time.Minute))
				for i := range 8 {
					d := b.takeAll(
						store.Check{Rule: wide, Key: "all", Cost: 1},
						store.Check{Rule: narrow, Key: "client", Cost: 1})
					equal(t, "narrow", d[1].Allowed, i < 3)
					equal(t, "wide", d[0].Allowed, true)
					equal(t, "wide has left", d[0].Remaining, 10-min(int64(i)+1, 3))
				}
				equal(t, "wide, alone", b.admitted(wide, "all", 20), 7)

				// If both refuse, both decisions have a wait.
				d := b.takeAll(
					store.Check{Rule: wide, Key: "all", Cost: 1},
					store.Check{Rule: narrow, Key: "client", Cost: 1})
				if d[0].Allowed || d[1].Allowed || d[0].RetryAfter <= 0 || d[1].RetryAfter <= 0 {
					t.Fatalf("both: %s, %s", describe(d[0]), describe(d[1]))
				}
			})
		}
	}

	// mholt/caddy-ratelimit issue 10: the order of zones decided which quota was used.
	t.Run("Issue10", func(t *testing.T) {
		b := start(t, open)
		second := Rule(t, "second", "sliding_window_log", per(2, time.Second))
		minute := Rule(t, "minute", "sliding_window_log", per(5, time.Minute))
		passed := 0
		for range 30 {
			d := b.takeAll(store.Check{Rule: minute, Key: "c", Cost: 1}, store.Check{Rule: second, Key: "c", Cost: 1})
			if d[0].Allowed && d[1].Allowed {
				passed++
			}
		}
		equal(t, "in the first second", passed, 2)
		b.wait(time.Second)
		equal(t, "of the minute are left", b.take(minute, "c", 0).Remaining, 3)
	})

	// mholt/caddy-ratelimit issue 70: 5 per header, 10 in all. A client that sends 10
	// gets 5; another one must then still get 5.
	t.Run("Issue70", func(t *testing.T) {
		b := start(t, open)
		header := Rule(t, "header", "sliding_window_log", per(5, time.Minute))
		all := Rule(t, "all", "sliding_window_log", per(10, time.Minute))
		for _, client := range []string{"one", "two"} {
			passed := 0
			for range 10 {
				d := b.takeAll(store.Check{Rule: header, Key: client, Cost: 1}, store.Check{Rule: all, Cost: 1})
				if d[0].Allowed && d[1].Allowed {
					passed++
				}
			}
			equal(t, "client "+client, passed, 5)
		}
	})

	t.Run("TwelveZones", func(t *testing.T) {
		b := start(t, open)
		var checks []store.Check
		for i := range 12 {
			rule := Rule(t, strings.Repeat("z", i+1), "token_bucket", per(int64(5+i), time.Minute))
			checks = append(checks, store.Check{Rule: rule, Key: "k", Cost: 1})
		}
		for range 9 {
			b.takeAll(checks...)
		}
		for i, c := range checks {
			equal(t, c.Rule.Zone(), b.take(c.Rule, "k", 0).Remaining, int64(i))
		}
	})
}

// keys tests unusual keys.
func keys(t *testing.T, open Open) {
	names := []string{
		"", "*", "#", "%", "a", "A", "a ", "a:b", "{a}", "a}", "}{", "%61", "a\x00", "\xff\xfe", "\r\n",
		"日本", "203.0.113.7", "zone", "::1", strings.Repeat("x", 64), strings.Repeat("x", 65),
		strings.Repeat("k", 1<<20), strings.Repeat("k", 1<<20) + "2",
	}
	for _, name := range algorithms.Names() {
		t.Run(name, func(t *testing.T) {
			b := start(t, open)
			// Zones and keys whose names, when joined, could be the same.
			zones := []string{"zone", "a", "a:b", "b", "}:zone", "zone:" + name, "*"}
			for _, zone := range zones {
				rule := Rule(t, zone, name, Limit(name, 2, time.Minute))
				for _, key := range names {
					if got := b.admitted(rule, key, 3); got != 2 {
						t.Fatalf("zone %q, key %.80q: %d admitted, want 2", zone, key, got)
					}
				}
			}
		})
	}
	t.Run("AnotherAlgorithmStartsAnew", func(t *testing.T) {
		b := start(t, open)
		for _, name := range algorithms.Names() {
			equal(t, name, b.admitted(Rule(t, "zone", name, Limit(name, 4, time.Minute)), "k", 9), 4)
		}
	})
}
