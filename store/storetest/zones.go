package storetest

import (
	"fmt"
	"strings"
	"time"

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
