package linear

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// maxZones is the highest number of zones of a key.
const maxZones = 3

// zoneRule is a zone that a key meets.
type zoneRule struct {
	rule  *store.Rule
	rules *store.KeyRules

	overrides []*store.PreparedOverride // that a key may have
}

// limit is a limit and its algorithm.
type limit struct {
	algorithm string
	algorithms.Limit
}

// The limits are small, so that many requests are refused.
var (
	bucket   = limit{"token_bucket", algorithms.Limit{Events: 20, Window: time.Second, Burst: 30}}
	interval = limit{"token_bucket", algorithms.Limit{Events: 9, Window: 500 * time.Millisecond, Refill: algorithms.RefillInterval}}
	window   = limit{"fixed_window", algorithms.Limit{Events: 25, Window: time.Second}}
	first    = limit{"fixed_window", algorithms.Limit{Events: 12, Window: 700 * time.Millisecond, Align: algorithms.AlignFirstRequest}}
	sliding  = limit{"sliding_window_counter", algorithms.Limit{Events: 17, Window: time.Second}}
	log      = limit{"sliding_window_log", algorithms.Limit{Events: 20, Window: time.Second}}
	meter    = limit{"leaky_bucket", algorithms.Limit{Events: 15, Window: time.Second, Burst: 10}}
	queue    = limit{"leaky_bucket", algorithms.Limit{Events: 30, Window: time.Second, Burst: 20, Mode: algorithms.ModeQueue}}
	waiting  = limit{"leaky_bucket", algorithms.Limit{Events: 30, Window: time.Second, Burst: 50, Mode: algorithms.ModeQueue, MaxWait: 250 * time.Millisecond}}
	slots    = limit{"concurrency", algorithms.Limit{Events: 8, Lease: 5 * time.Second}}
)

// ban is for the zones of which clients are banned.
var ban = store.Ban{For: time.Second, After: 3, Within: 2 * time.Second, UpTo: 3 * time.Second}

// overrides are what keys may have instead of a limit: with numbers that count in the same state, or in another.
var overrides = []store.Override{
	{Kind: store.KindExempt},
	{Kind: store.KindBanned},
	{Kind: store.KindLimit, Limit: algorithms.Limit{Events: 20, Burst: 10}},
	{Kind: store.KindLimit, Limit: algorithms.Limit{Events: 20, Burst: 60}},
	{Kind: store.KindLimit, Limit: algorithms.Limit{Events: 8}},
}

// overridesOf returns those of the overrides that count in the state of the rule.
func overridesOf(rule *store.Rule) (fit []*store.PreparedOverride) {
	for _, o := range overrides {
		if p, err := rule.PrepareOverride(o); err == nil && (o.Kind != store.KindLimit || p.States(rule.States()) == rule.States()) {
			fit = append(fit, p)
		}
	}
	return fit
}

// profiles returns the zones that keys meet: each algorithm alone, and several zones that are charged
// together or not at all.
func profiles(t testing.TB) (all [][]zoneRule) {
	add := func(rules *store.KeyRules, limits ...limit) {
		var zones []zoneRule
		for _, l := range limits {
			a, err := algorithms.Get(l.algorithm)
			if err != nil {
				t.Fatal(err)
			}
			rule, err := store.NewRule(fmt.Sprintf("%d-%d", len(all), len(zones)), a, l.Limit, 0)
			if err != nil {
				t.Fatal(err)
			}
			zones = append(zones, zoneRule{rule, rules, overridesOf(rule)})
		}
		all = append(all, zones)
	}
	for _, l := range []limit{bucket, interval, window, first, sliding, log, meter, queue, waiting, slots} {
		add(nil, l)
	}
	add(nil, bucket, window)
	add(nil, log, slots)
	add(nil, queue, sliding, first)
	add(&store.KeyRules{Overrides: true, Ban: &ban}, bucket)
	add(&store.KeyRules{Overrides: true}, log, window)
	add(&store.KeyRules{Ban: &ban}, bucket)
	add(&store.KeyRules{Ban: &ban}, log, meter)
	return all
}
