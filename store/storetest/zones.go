package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

func twelveZones(b *bench) {
	var checks []store.Check
	for i := range 12 {
		rule := Rule(b, fmt.Sprint("zone ", i), "token_bucket", per(int64(5+i), time.Minute))
		checks = append(checks, store.Check{Rule: rule, Key: "k", Cost: 1})
	}
	for range 9 {
		b.takeAll(checks...)
	}
	for i, c := range checks {
		equal(b, c.Rule.Zone(), b.take(c.Rule, "k", 0).Remaining, int64(i))
	}
}

// keys tests unusual keys, and zones and keys whose names, when joined, could be the same.
func keys(b *bench, name string) {
	names := []string{
		"", "*", "#", "%", "a", "A", "a ", "a:b", "{a}", "a}", "}{", "%61", "a\x00", "\xff\xfe", "\r\n",
		"日本", "203.0.113.7", "zone", "::1", strings.Repeat("x", 64), strings.Repeat("x", 65),
		strings.Repeat("k", 1<<20), strings.Repeat("k", 1<<20) + "2",
	}
	for _, zone := range []string{"zone", "a", "a:b", "b", "}:zone", "zone:" + name, "*"} {
		rule := Rule(b, zone, name, Limit(name, 2, time.Minute))
		for _, key := range names {
			if got := b.admitted(rule, key, 3); got != 2 {
				b.Fatalf("zone %q, key %.80q: %d admitted, want 2", zone, key, got)
			}
		}
	}
}

// allOrNothing tests requests that several zones decide. In mholt/caddy-ratelimit, the order of zones decided which
// quota was used (issue 10), and what one zone refused still used up another (issue 70).
func allOrNothing(b *bench, first string) {
	for _, second := range algorithms.Names() {
		b := b.another()
		narrow := Rule(b, "narrow", first, Limit(first, 3, time.Minute))
		wide := Rule(b, "wide", second, Limit(second, 10, time.Minute))
		both := func() []algorithms.Decision {
			return b.takeAll(store.Check{Rule: wide, Key: "all", Cost: 1}, store.Check{Rule: narrow, Key: "client", Cost: 1})
		}
		for i := range 8 {
			d := both()
			equal(b, second+": narrow", d[1].Allowed, i < 3)
			equal(b, second+": wide", d[0].Allowed, true)
			equal(b, second+": wide has left", d[0].Remaining, 10-min(int64(i)+1, 3))
		}
		equal(b, second+": wide, alone", b.admitted(wide, "all", 20), 7)

		// If both refuse, both decisions have a wait.
		if d := both(); d[0].Allowed || d[1].Allowed || d[0].RetryAfter <= 0 || d[1].RetryAfter <= 0 {
			b.Fatalf("%s: both: %+v, %+v", second, d[0], d[1])
		}
	}
}
