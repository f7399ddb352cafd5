package refusals_test

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/refusals"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// BenchmarkCache measures what a request does at the cache, with a refusal that is remembered.
func BenchmarkCache(b *testing.B) {
	rule := storetest.Rule(b, "zone", "token_bucket", storetest.Limit("token_bucket", 10, time.Hour))
	c, p := refusals.NewCache(time.Hour, recent), rule.At(0)
	large, small := store.Check{Rule: rule, Key: "203.0.113.7", Cost: 5}, store.Check{Rule: rule, Key: "203.0.113.7", Cost: 1}
	d := refused(time.Hour)
	pass := algorithms.Decision{Allowed: true, Quota: 10, Remaining: 4, NextAfter: time.Minute, ResetAfter: time.Hour}
	c.Put(&large, p, d, false, 0, 0)
	for name, do := range map[string]func(){
		"a refusal that holds": func() { c.Get(&large, p, time.Second, new(refusals.Flight)) },
		"a key without one": func() {
			c.Get(&store.Check{Rule: rule, Key: "203.0.113.8", Cost: 1}, p, time.Second, new(refusals.Flight))
		},
		"another refusal":        func() { c.Put(&large, p, d, false, 0, 0) },
		"a charge":               func() { c.Put(&small, p, pass, true, 0, 0) },
		"a refusal that is over": func() { c.Delete(rule, "203.0.113.7"); c.Put(&large, p, d, false, 0, 0) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				do()
			}
		})
	}
}
