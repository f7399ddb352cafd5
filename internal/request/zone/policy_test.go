package zone

import (
	"slices"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// planOf returns the plan of a zone with a limit, which is given in JSON.
func planOf(t *testing.T, zone, text string) *Plan {
	t.Helper()
	var l config.Limit
	if err := option.JSON([]byte(text), &l); err != nil {
		t.Fatal(err)
	}
	p, err := (&Zone{Place: Place{Name: zone}}).newPlan("", l)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// variables returns a replacer and the values of its placeholders.
func variables() (*caddy.Replacer, map[string]any) {
	values, repl := make(map[string]any), caddy.NewEmptyReplacer()
	repl.Map(func(name string) (any, bool) {
		value, ok := values[name]
		return value, ok
	})
	return repl, values
}

// TestDynamicPoliciesAreBounded: many different limits leave no more policies behind than a few.
func TestDynamicPoliciesAreBounded(t *testing.T) {
	p := planOf(t, "flood", `{"max_events": "{http.vars.quota}", "window": "1h", "algorithm": "token_bucket"}`)
	repl, vars := variables()
	const quota = "http.vars.quota"
	for i := range 100_000 {
		vars[quota] = i + 1
		g, err := p.Resolve(repl)
		if err != nil || g.Quota != int64(i+1) {
			t.Fatalf("quota %d: got %+v, %v", i+1, g, err)
		}
	}
	kept := 0
	for i := range p.made {
		if p.made[i].Load() != nil {
			kept++
		}
	}
	if kept == 0 || kept > policySlots {
		t.Errorf("%d policies are kept", kept)
	}
	// The policy of a repeated limit is made once, also after the flood.
	vars[quota] = 5
	first, _ := p.Resolve(repl)
	again, _ := p.Resolve(repl)
	if first != again {
		t.Error("the same policy was made twice")
	}
	if n := testing.AllocsPerRun(1000, func() { _, _ = p.Resolve(repl) }); n > 2 {
		t.Errorf("%v allocations for a cached policy", n)
	}
}

// TestStatesOfAZone: a reset finds the states of all plans, each family once, and those of limits
// that requests have brought. Overrides need one rule for each algorithm.
func TestStatesOfAZone(t *testing.T) {
	z, made := new(Zone), make(map[string]*Plan)
	for name, limit := range map[string]string{
		"GET":    `{"max_events": 5, "window": "1h"}`,
		"POST":   `{"max_events": 9, "window": "1h"}`,
		"PUT":    `{"algorithm": "token_bucket", "max_events": 10, "window": "1s"}`,
		"DELETE": `{"algorithm": "token_bucket", "max_events": "{http.request.header.Events} 2", "window": "1h"}`,
	} {
		made[name] = planOf(t, "states", limit)
		z.Plans = append(z.Plans, made[name])
	}
	repl, values := variables()
	for _, events := range []string{"3", "4", "3"} {
		values["http.request.header.Events"] = events
		if _, err := made["DELETE"].Resolve(repl); err != nil {
			t.Fatal(err)
		}
	}
	names := func(rules []*store.Rule) (names []string) {
		for _, rule := range rules {
			names = append(names, rule.ID())
		}
		slices.Sort(names)
		return names
	}
	const bucket = "states:token_bucket.4:1per"
	if got, want := names(z.States()), []string{"states:sliding_window_log.4:1h", bucket + "100ms", bucket + "15m", bucket + "20m", bucket + "30m"}; !slices.Equal(got, want) {
		t.Errorf("states: got %q, want %q", got, want)
	}
	if got := names(z.Rules()); len(got) != 2 {
		t.Errorf("rules: got %q, want one for each algorithm", got)
	}
}

// TestUnknownStates: only buckets have other states for other events, and none for another burst.
func TestUnknownStates(t *testing.T) {
	for limit, want := range map[string]bool{
		`{"max_events": "{http.vars.n} 2", "window": "1h"}`:                                                  false,
		`{"max_events": "{http.vars.n} 2", "window": "1h", "algorithm": "token_bucket"}`:                     true,
		`{"max_events": 2, "burst": "{http.vars.n} 2", "window": "1h", "algorithm": "token_bucket"}`:         false,
		`{"max_events": "{http.vars.n} 1000000000000", "window": "1h", "algorithm": "leaky_bucket"}`:         true,
		`{"max_events": 2, "window": "1h", "algorithm": "token_bucket"}`:                                     false,
		`{"max_events": "{http.vars.n}", "window": "1h", "algorithm": "token_bucket", "refill": "interval"}`: true,
	} {
		if got := planOf(t, "unknown", limit).hasUnknownStates(); got != want {
			t.Errorf("%s: %v", limit, got)
		}
	}
}

// TestWaits: how long a refusal holds, what its client is told, and when there is more, for each kind of refusal.
func TestWaits(t *testing.T) {
	const never, window = algorithms.Never, time.Minute
	rate, slots := QuotaPolicy{Window: config.Window{Duration: caddy.Duration(window)}}, QuotaPolicy{Slots: true}
	for _, c := range []struct {
		name   string
		policy *QuotaPolicy
		d      algorithms.Decision
		cost   int64
		want   Waits
	}{
		{"a limit", &rate, algorithms.Decision{Quota: 5, RetryAfter: 3 * time.Second, NextAfter: time.Second}, 2, Waits{Retry: 3 * time.Second, Told: 3 * time.Second, Next: time.Second}},
		{"a place before there is more", &rate, algorithms.Decision{Quota: 5, RetryAfter: time.Second, NextAfter: 3 * time.Second}, 1, Waits{Retry: time.Second, Told: 3 * time.Second, Next: 3 * time.Second}},
		{"too dear", &rate, algorithms.Decision{Quota: 5, RetryAfter: never}, 6, Waits{Retry: never}},
		{"a limit of 0", &rate, algorithms.Decision{RetryAfter: never}, 1, Waits{Retry: never, Told: window}},
		{"banned for good", &rate, algorithms.Decision{Quota: 5, RetryAfter: never, Banned: true}, 6, Waits{Retry: never, Told: window}},
		{"a slot", &slots, algorithms.Decision{Quota: 5, RetryAfter: 30 * time.Second, NextAfter: time.Second}, 1, Waits{Retry: time.Second, Told: time.Second, Slot: true}},
		{"too many slots", &slots, algorithms.Decision{Quota: 5, RetryAfter: never}, 6, Waits{Retry: never, Slot: true}},
		{"banned from slots", &slots, algorithms.Decision{Quota: 5, RetryAfter: time.Hour, NextAfter: time.Hour, Banned: true}, 1, Waits{Retry: time.Hour, Told: time.Hour}},
	} {
		if got := c.policy.Waits(&c.d, c.cost); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
