package admin

import (
	"encoding/json"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/limit"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// FuzzOwnLimit: whatever stands in a limit of one key, it is refused with a reason, or the
// store takes it; and what is told of it means the same again.
func FuzzOwnLimit(f *testing.F) {
	for _, text := range []string{
		`"500/1m"`, `500`, `"500"`, `"token_bucket 10/1s burst 50"`, `"burst 5 events 5"`, `"gcra 5/m refill interval"`, `"unlimited"`,
		`{"max_events": 5, "window": "1m"}`, `{"max_events": "{a} 5"}`, `"5/1m mode queue max_wait 1s"`, `"5/day"`, `"window day events 3"`,
		`"sliding_window_log"`, `"lease 5s"`, `"{a} {b}"`, `""`, `null`, `-1`, `1e400`,
	} {
		for i := range ownRules(f) {
			f.Add(text, uint8(i))
		}
	}
	rules := ownRules(f)
	f.Fuzz(func(t *testing.T, text string, of uint8) {
		rule := rules[int(of)%len(rules)]
		z := &runningZone{Zone: &zone.Zone{Name: "z", Cost: &limit.Amount{Number: 1}, OwnPolicies: zone.Policies{Likely: &zone.QuotaPolicy{Rule: rule}}}}
		limit := func(text string) (s store.Override, ok bool) {
			var asked overrideRequest
			if json.Unmarshal([]byte(`{"limit": `+text+`}`), &asked) != nil {
				return s, false
			}
			with, s, err := z.setting(&asked)
			if err == nil {
				_, err = with.PrepareOverride(s)
			}
			return s, err == nil
		}
		first, ok := limit(text)
		if !ok || first.Kind != store.KindLimit {
			return
		}
		told := describeOwn(rule, first.Limit, true)
		quoted, err := json.Marshal(told)
		if err != nil {
			t.Fatal(err)
		}
		again, ok := limit(string(quoted))
		if !ok {
			t.Fatalf("%s is told as %q, which is no limit", text, told)
		}
		a, _ := rule.PrepareOverride(first)
		b, _ := rule.PrepareOverride(again)
		if a.Encoded() != b.Encoded() {
			t.Fatalf("%s is told as %q, which is another limit: %q, %q", text, told, a.Encoded(), b.Encoded())
		}
	})
}

// TestOwnLimitsBesideAReserve: a key gets no limit that gets past the reserve.
func TestOwnLimitsBesideAReserve(t *testing.T) {
	z := &runningZone{Zone: &zone.Zone{
		Name: "kept", Reserve: make(caddyhttp.MatcherSets, 1), OwnPolicies: zone.Policies{Likely: &zone.QuotaPolicy{Rule: ownRules(t)[0]}},
	}}
	for text, want := range map[string]bool{
		`{"limit": "20"}`: false, `{"plan": "pro"}`: false, `{"limit": "unlimited"}`: true, `{"exempt": true}`: true,
	} {
		var asked overrideRequest
		if err := json.Unmarshal([]byte(text), &asked); err != nil {
			t.Fatal(err)
		}
		if _, _, err := z.setting(&asked); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// ownRules are one of each algorithm.
func ownRules(t testing.TB) (rules []*store.Rule) {
	for _, name := range algorithms.Names() {
		a, err := algorithms.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		l := algorithms.Limit{Events: 2, Window: 3600e9}
		if limit.Lends(name) {
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
