package doctor

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestChecks: each thing that can be wrong with an otherwise good set-up is found, by one check, and
// everything else stays as it was.
func TestChecks(t *testing.T) {
	if bad := notOK(Examine(good())); bad != "" {
		t.Fatalf("the good set-up: %s", bad)
	}
	zone := func(change func(*Zone)) func(*Facts) { return func(f *Facts) { change(&f.Zones[0]) } }
	server := func(change func(*Server)) func(*Facts) { return func(f *Facts) { change(&f.Servers[0]) } }
	of := func(change func(*Store)) func(*Facts) { return func(f *Facts) { change(&f.Stores[0]) } }
	condition := func(change func(*store.Condition)) func(*Facts) {
		return of(func(s *Store) { change(&s.Examined.Servers[0]) })
	}
	waited := func(n uint64, p50, p99 time.Duration) func(*Facts) {
		return of(func(s *Store) { s.Latency = &adminapi.Latency{Count: n, P50: p50.Seconds(), P99: p99.Seconds()} })
	}
	trouble := func(kind string) func(*Facts) {
		return condition(func(c *store.Condition) { c.Trouble, c.Err = kind, errors.New("no") })
	}
	for name, c := range map[string]struct {
		change func(*Facts)
		want   string // level and check of what is not ok, separated by commas
	}{
		"no zones":          {func(f *Facts) { f.Zones = nil }, "warn zones"},
		"no proxies":        {server(func(s *Server) { s.Trusted = nil }), ""},
		"everybody trusted": {server(func(s *Server) { s.Trusted = []string{"10.0.0.1", "::/0"} }), "fail client_address"},
		"not strict":        {server(func(s *Server) { s.Strict = false }), "warn client_address"},
		"one value":         {server(func(s *Server) { s.Strict, s.Headers = false, []string{"CF-Connecting-IP"} }), ""},
		"Unix sockets":      {server(func(s *Server) { s.Trusted, s.TrustsSockets = nil, true }), ""},

		"a warning of the config": {zone(func(z *Zone) { z.Warnings = []string{"key is a constant; did you mean {x}?"} }), "warn config"},
		"a constant as the key": {zone(func(z *Zone) {
			z.Warnings, z.OneKey = []string{`key "client_ip" is a constant, so all clients share one limit`}, true
		}), "fail config"},
		"unlimited":         {zone(func(z *Zone) { z.Unlimited = true }), "warn limit"},
		"closed":            {zone(func(z *Zone) { z.Closed = true }), "warn limit"},
		"dry run":           {zone(func(z *Zone) { z.Rollout = "dry run" }), "warn rollout"},
		"half a rollout":    {zone(func(z *Zone) { z.Rollout = "enforce 50 %" }), ""},
		"never met":         {zone(func(z *Zone) { z.SinceLoaded, z.Elsewhere = 0, 100 }), "warn requests"},
		"missed":            {zone(func(z *Zone) { z.SinceLoaded, z.Missed, z.Served = 0, 20, 20 }), "warn requests"},
		"missed by few":     {zone(func(z *Zone) { z.SinceLoaded, z.Missed, z.Served = 0, 19, 1000 }), ""},
		"never reached":     {zone(func(z *Zone) { z.SinceLoaded, z.Matches, z.Served = 0, false, 20 }), "warn requests"},
		"no matchers":       {zone(func(z *Zone) { z.SinceLoaded, z.Elsewhere, z.Matches = 0, 100, false }), ""},
		"no traffic":        {zone(func(z *Zone) { z.SinceLoaded, z.Elsewhere = 0, 99 }), ""},
		"all exempt":        {zone(func(z *Zone) { z.Totals = totals(outcome.Exempt, 100) }), "warn exempt"},
		"a few exempt":      {zone(func(z *Zone) { z.Totals = totals(outcome.Exempt, 99) }), ""},
		"all rejected":      {zone(func(z *Zone) { z.Totals = totals(outcome.Rejected, 100) }), "fail rejected"},
		"a proxy":           {zone(func(z *Zone) { z.Forwarded = "all are one client; " + addZone.With().String() }), "warn proxy"},
		"one key":           {zone(func(z *Zone) { z.Spread = topk.Spread{Requests: 100, Keys: 1, Repeated: 1} }), "warn keys"},
		"one network":       {zone(func(z *Zone) { z.Networks, z.Spread = true, topk.Spread{Requests: 100, Keys: 1, Repeated: 1} }), ""},
		"one key so far":    {zone(func(z *Zone) { z.Spread = topk.Spread{Requests: 99, Keys: 1, Repeated: 1} }), ""},
		"one key for all":   {zone(func(z *Zone) { z.Variable, z.Spread = false, topk.Spread{Requests: 100, Keys: 1, Repeated: 1} }), ""},
		"new keys":          {zone(func(z *Zone) { z.Spread = topk.Spread{Requests: 5000, Keys: 512, Repeated: 10} }), "warn keys"},
		"new addresses":     {zone(func(z *Zone) { z.Addresses, z.Spread = true, topk.Spread{Requests: 5000, Keys: 512} }), ""},
		"no keys":           {zone(func(z *Zone) { z.Keyless = 100 }), "warn missing_key"},
		"few without a key": {zone(func(z *Zone) { z.Keyless = 99 }), ""},
		"unknown costs":     {zone(func(z *Zone) { z.Results[stats.CostRead], z.Results[stats.CostUnknown] = 90, 10 }), "warn costs"},
		"encoded costs":     {zone(func(z *Zone) { z.Results[stats.CostEncoded] = 10 }), "warn costs"},
		"few unknown costs": {zone(func(z *Zone) { z.Results[stats.CostRead], z.Results[stats.CostUnknown] = 91, 10 }), ""},
		"a few costs":       {zone(func(z *Zone) { z.Results[stats.CostInvalid] = 9 }), ""},
		"errors":            {zone(func(z *Zone) { z.Results[stats.CostFailed], z.Results[stats.CostCutOff] = 100, 100 }), ""},
		"no address, by a proxy": {zone(func(z *Zone) {
			z.Keyless, z.Addresses, z.Forwarded = 100, true, "all are one client; "+addZone.With().String()
		}), "warn proxy"},
		"never charged":         {zone(func(z *Zone) { z.Judged = 100 }), "warn charge"},
		"charged once":          {zone(func(z *Zone) { z.Judged, z.Charged = 100, 1 }), ""},
		"not charged so far":    {zone(func(z *Zone) { z.Judged = 99 }), ""},
		"alone":                 {zone(func(z *Zone) { z.Shared = "redis" }), "warn store"},
		"skipped keys":          {zone(func(z *Zone) { z.Keyless, z.MissingKey = 1000, "skip" }), ""},
		"a block list":          {zone(func(z *Zone) { z.Totals, z.Blocks = totals(outcome.Rejected, 100), true }), "warn rejected"},
		"no key, and a block":   {zone(func(z *Zone) { z.Totals, z.Blocks, z.Keyless = totals(outcome.Rejected, 100), true, 1 }), "fail rejected"},
		"few rejected keys":     {zone(func(z *Zone) { z.Keyless, z.MissingKey = 899, "reject" }), ""},
		"rejected keys":         {zone(func(z *Zone) { z.Keyless, z.MissingKey = 900, "reject" }), "warn missing_key"},
		"no keys, and a choice": {zone(func(z *Zone) { z.Keyless, z.Warnings = 1000, []string{`key "{header.Key}": any client can write it`} }), "warn config, warn missing_key"},
		"allow":                 {zone(func(z *Zone) { z.Silent, z.OnStoreError = true, "allow" }), "fail on_store_error"},
		"deny":                  {zone(func(z *Zone) { z.Silent, z.OnStoreError = true, "deny" }), "fail on_store_error"},
		"local":                 {zone(func(z *Zone) { z.Silent, z.OnStoreError = true, "local" }), "warn on_store_error"},
		"the upstream":          {func(f *Facts) { f.Adaptive = []adminapi.Adaptive{{Waiting: 1}} }, "warn upstream"},
		"its failures":          {func(f *Facts) { f.Adaptive = []adminapi.Adaptive{{Failed: 200, Useful: 700}} }, "warn upstream"},
		"few failures":          {func(f *Facts) { f.Adaptive = []adminapi.Adaptive{{Failed: 200, Useful: 7000}} }, ""},
		"dead":                  {trouble(store.TroubleAnswer), "fail answer"},
		"TLS":                   {trouble(store.TroubleTLS), "fail tls"},
		"login":                 {trouble(store.TroubleLogin), "fail login"},
		"replica":               {trouble(store.TroubleReplica), "fail replica"},
		"full":                  {trouble(store.TroubleMemory), "fail memory"},
		"keys out of use":       {trouble(store.TroubleRights), "fail rights"},
		"breaker":               {of(func(s *Store) { s.Breaker = store.BreakerOpen }), "fail breaker"},
		"busy":                  {of(func(s *Store) { s.Busy = true }), "warn busy"},
		"silent": {of(func(s *Store) {
			s.Silent = []adminapi.SilentServer{{Address: "10.0.0.6:26379", Since: time.Now(), Error: "no"}}
		}), "warn silent"},
		"failing":        {of(func(s *Store) { s.Failing = true }), "warn breaker"},
		"far":            {condition(func(c *store.Condition) { c.RoundTrip = 20 * time.Millisecond }), "warn round_trip"},
		"too far":        {condition(func(c *store.Condition) { c.RoundTrip = 50 * time.Millisecond }), "fail round_trip"},
		"long waits":     {waited(100, time.Millisecond, 20*time.Millisecond), "warn waits"},
		"few long waits": {waited(99, time.Millisecond, 20*time.Millisecond), ""},
		"all wait long":  {waited(10, 20*time.Millisecond, 20*time.Millisecond), "warn waits"},
		"short waits":    {waited(1000, time.Millisecond, 16*time.Millisecond), ""},
		"clock":          {condition(func(c *store.Condition) { c.ClockAhead = 2 * time.Second }), "warn clock"},
		"clock behind":   {condition(func(c *store.Condition) { c.ClockAhead = -2 * time.Second }), "warn clock"},
		"a late answer": {condition(func(c *store.Condition) {
			c.ClockAhead, c.ClockTook = 1500*time.Millisecond, 4*time.Second
		}), ""},
		"nearly full":     {condition(func(c *store.Condition) { c.Memory = 95 << 20 }), "warn memory"},
		"no bound":        {condition(func(c *store.Condition) { c.MaxMemory = 0 }), "warn memory"},
		"evicts":          {condition(func(c *store.Condition) { c.Evicts = "allkeys-lru" }), "warn eviction"},
		"volatile-ttl":    {condition(func(c *store.Condition) { c.Evicts = "volatile-ttl" }), ""},
		"has evicted":     {condition(func(c *store.Condition) { c.Evicts, c.Evicted = "volatile-ttl", 1 }), "fail eviction"},
		"no INFO":         {condition(func(c *store.Condition) { c.Described = false }), "unknown memory"},
		"many keys":       {of(func(s *Store) { s.Examined.Keys, s.Examined.MaxKeys = 950, 1000 }), "warn keys"},
		"shared keys":     {of(func(s *Store) { s.Examined.MaxKeys, s.Examined.Sharing = 1000, true }), "fail keys"},
		"few instances":   {of(func(s *Store) { s.ConfiguredInstances = 1 }), "warn fleet"},
		"spare instances": {of(func(s *Store) { s.ConfiguredInstances = 3 }), ""},
		"slow": {func(f *Facts) {
			f.Stores[0].Examined.Servers[0].RoundTrip, f.Stores[0].Breaker = time.Second, store.BreakerOpen
			f.Stores[0].Latency = &adminapi.Latency{Count: 100, P99: 1}
		}, "fail round_trip"},
		"dead, with what follows": {func(f *Facts) {
			trouble(store.TroubleAnswer)(f)
			f.Zones[0].Silent, f.Zones[0].Rollout = true, "dry run"
			f.Stores[0].Breaker, f.Stores[0].Failing, f.Stores[0].Latency = store.BreakerOpen, true, &adminapi.Latency{Count: 100, P99: 1}
		}, "fail answer, fail on_store_error, warn rollout"},
		"a store of other people": {of(func(s *Store) {
			*s = Store{Store: adminapi.Store{Name: "theirs"}, Remote: true}
		}), ""},
		"a dead store of other people": {of(func(s *Store) {
			*s = Store{Store: adminapi.Store{Name: "theirs"}, Remote: true, Err: errors.New("no")}
		}), "fail answer"},
	} {
		f := good()
		c.change(f)
		d := Examine(f)
		if bad := notOK(d); bad != c.want {
			t.Errorf("%s: %q, want %q", name, bad, c.want)
		}
		want := adminapi.LevelOK
		for _, level := range []string{adminapi.LevelWarn, adminapi.LevelFail} {
			if strings.Contains(c.want, level) {
				want = level
			}
		}
		if d.Level != want {
			t.Errorf("%s: level %s, want %s", name, d.Level, want)
		}
		for _, found := range d.Findings { // warnings of a config have advice of their own: TestAdviceIsGood
			if bad := found.Check != "config" && (found.Level == adminapi.LevelWarn || found.Level == adminapi.LevelFail); bad && found.Fix.String() == "" || strings.Contains(found.Found+found.Fix.String(), "%!") {
				t.Errorf("%s: %+v", name, found)
			}
		}
	}
}

// TestOneFinding: what several zones have in common, because their store does not answer, is one finding with their names. What only
// one has, or another store, stays its own.
func TestOneFinding(t *testing.T) {
	f := good()
	f.Zones = nil
	for _, of := range []struct{ name, onError, store string }{
		{"a", "local", "x"}, {"b", "local", "x"}, {"c", "deny", "x"}, {"d", "local", "y"}, {"e", "local", "x"}, {"a", "local", "x"},
	} {
		z := good().Zones[0]
		z.Silent, z.Name, z.OnStoreError, z.Store = true, of.name, of.onError, of.store
		f.Zones = append(f.Zones, z)
	}
	var got []string
	for _, found := range Examine(f).Findings {
		got = append(got, found.Level+" "+found.Of+" "+strings.Join(found.Names, " "))
	}
	if got, want := strings.Join(got, ", "), "fail zone c, warn zone a b e, warn zone d"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestDecides: a store that decides nothing in time does not decide.
func TestDecides(t *testing.T) {
	for want, conditions := range map[bool][]store.Condition{
		true:  {{RoundTrip: 49 * time.Millisecond}, {Trouble: store.TroubleMemory}},
		false: {{RoundTrip: 50 * time.Millisecond}, {Trouble: store.TroubleAnswer}},
	} {
		for _, c := range conditions {
			s := Store{Examined: &store.Examination{Servers: []store.Condition{c}, Timeout: 50 * time.Millisecond}}
			if s.Decides() != want {
				t.Errorf("%+v decides: %t", c, !want)
			}
		}
	}
}

// good is a set-up with nothing wrong.
func good() *Facts {
	return &Facts{
		Servers: []Server{{Server: "srv0", Trusted: []string{"10.0.0.0/8"}, Strict: true, Headers: []string{"X-Forwarded-For"}}},
		Zones: []Zone{{
			Zone: adminapi.Zone{
				Name: "api", Store: "redis", ZoneCounts: adminapi.ZoneCounts{Totals: totals(outcome.Allowed, 1000)}, Key: "{cookie.sid}", KeyForm: "{cookie.sid}", OnStoreError: "allow",
			},
			SinceLoaded: 1000, Matches: true, Variable: true, MissingKey: "share",
			Spread: topk.Spread{Requests: 1000, Keys: 100, Repeated: 90},
		}},
		Stores: []Store{{
			Store: adminapi.Store{Name: "redis", Breaker: store.BreakerClosed, Instances: 2}, Remote: true,
			Examined: &store.Examination{
				Timeout: 50 * time.Millisecond,
				Servers: []store.Condition{{
					Address: "10.0.0.5:6379", RoundTrip: time.Millisecond, ClockTook: time.Millisecond, Described: true, Version: "7.0.0", Evicts: "noeviction",
					Memory: 1 << 20, MaxMemory: 100 << 20,
				}},
			},
		}},
	}
}

// totals has n requests with an outcome, and at most 50 that were allowed.
func totals(o outcome.Outcome, n uint64) map[string]uint64 {
	t := make(map[string]uint64)
	if n < enough {
		t[outcome.Names[outcome.Allowed]] = 50
	}
	t[outcome.Names[o]] = n
	return t
}

func notOK(d adminapi.Diagnosis) string {
	var bad []string
	for _, f := range d.Findings {
		bad = append(bad, fmt.Sprint(f.Level, " ", f.Check))
	}
	return strings.Join(bad, ", ")
}

// TestInstances: each thing in which the instances of a fleet differ is found, by one check, of the instance that it is about.
func TestInstances(t *testing.T) {
	for name, c := range map[string]struct {
		change func(all []adminapi.Instance)
		want   string
	}{
		"well":           {func([]adminapi.Instance) {}, ""},
		"a silent one":   {func(all []adminapi.Instance) { all[1].State = adminapi.StateSilent }, "warn instances b"},
		"a mute one":     {func(all []adminapi.Instance) { all[1].State = adminapi.StateMute }, "unknown instances b"},
		"one that left":  {func(all []adminapi.Instance) { all[1].State = adminapi.StateLeft }, ""},
		"another config": {func(all []adminapi.Instance) { all[2].Differs = []string{"z"} }, "fail config c"},
		"an outage":      {func(all []adminapi.Instance) { all[1].Trouble = "no answer" }, "warn outage b"},
		"an outage of all": {func(all []adminapi.Instance) {
			for i := range all {
				all[i].Trouble = "no answer"
			}
		}, ""},
		"a late one": {func(all []adminapi.Instance) { // its last report may be from before
			all[0].Trouble = "no answer"
			all[1].State = adminapi.StateSilent
		}, "warn outage a"},
	} {
		all := []adminapi.Instance{
			{Name: "a", State: adminapi.StateHere},
			{Name: "b", State: adminapi.StateReports},
			{Name: "c", State: adminapi.StateReports},
		}
		c.change(all)
		var bad []string
		for _, f := range Examine(&Facts{Instances: all, Zones: make([]Zone, 1)}).Findings {
			if f.Of == "instance" {
				bad = append(bad, f.Level+" "+f.Check+" "+strings.Join(f.Names, " "))
			}
		}
		if got := strings.Join(bad, ", "); got != c.want {
			t.Errorf("%s: found %q, want %q", name, got, c.want)
		}
	}
}

// TestUpstream: the doctor says since when the upstream is the bottleneck, and whether its requests differ much.
func TestUpstream(t *testing.T) {
	at := time.Date(2026, 11, 26, 14, 2, 11, 0, time.Local)
	examine := func(a adminapi.Adaptive) (found []string) {
		for _, f := range Examine(&Facts{Adaptive: []adminapi.Adaptive{a}}).Findings {
			found = append(found, f.Found)
		}
		return found
	}
	const mixed = "quick and slow requests share the limit, so it follows the upstream slowly: a slot is taken for 208ms on average, and most of the time by requests that take 961ms"
	for want, a := range map[string]adminapi.Adaptive{
		"the upstream is the bottleneck since 2026-11-26 14:02:11: 21 requests run, as many as it can use, and 40 wait": {Since: &at, Running: 21, Waiting: 40},
		"the upstream failed 200 of 1000 requests": {Failed: 200, Useful: 700, Left: 100},
		"": {Limit: 8, Failed: 1},
		"the upstream is the bottleneck: 0 requests run, as many as it can use, and 9 wait\n" + mixed: {Waiting: 9, Latency: 0.208, Spread: 4.62},
		"the upstream is the bottleneck: 0 requests run, as many as it can use, and 8 wait":           {Waiting: 8, Latency: 0.2, Spread: 2.1},
	} {
		if got := strings.Join(examine(a), "\n"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
