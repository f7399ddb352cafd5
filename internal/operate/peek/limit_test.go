package peek

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// FuzzRequestedLimit: any limit of an override is either an error, or the store accepts it. Then its
// description is a limit with the same meaning.
func FuzzRequestedLimit(f *testing.F) {
	for _, text := range []string{
		"500/1m", "500", "token_bucket 10/1s burst 50", "burst 5 events 5", "gcra 5/m refill interval", "unlimited", "exempt",
		"5/1m mode queue max_wait 1s", "5/day", "5r/min", "5/year", "concurrency 5", "window day events 3",
		"sliding_window_log", "lease 5s", "{a} {b}", "", "-1", "1e400",
	} {
		for i := range testRules(f) {
			f.Add(text, uint8(i))
		}
	}
	rules := testRules(f)
	f.Fuzz(func(t *testing.T, text string, i uint8) {
		rule := rules[int(i)%len(rules)]
		z := &zone.Zone{Zone: config.Zone{Cost: &config.Amount{Number: 1}}, Place: zone.Place{Name: "z"}, Own: &zone.Plan{Likely: &zone.QuotaPolicy{Rule: rule}}}
		limit := func(text string) (s store.Override, ok bool) {
			with, s, err := OverrideByText(z, text)
			if err == nil {
				_, err = with.PrepareOverride(s)
			}
			return s, err == nil
		}
		first, ok := limit(text)
		if !ok || first.Kind != store.KindLimit {
			return
		}
		description := DescribeLimit(rule, first.Limit, true)
		again, ok := limit(description)
		if !ok {
			t.Fatalf("%s is described as %q, which is not a limit", text, description)
		}
		a, _ := rule.PrepareOverride(first)
		b, _ := rule.PrepareOverride(again)
		if a.Params(algorithms.Params{}) != b.Params(algorithms.Params{}) {
			t.Fatalf("%s is described as %q, which is another limit: %v, %v", text, description, a.Params(algorithms.Params{}), b.Params(algorithms.Params{}))
		}
	})
}

// testRules returns a rule for each algorithm.
func testRules(t testing.TB) (rules []*store.Rule) {
	for _, name := range algorithms.Names() {
		a, err := algorithms.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		l := algorithms.Limit{Events: 2, Window: 3600e9}
		if config.CountsSlots(name) {
			l.Window = 0
		}
		rule, err := store.NewRule("z", a, l, 0)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, rule)
	}
	return rules
}
