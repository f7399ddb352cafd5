package config_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/config"
)

// read returns the limit that is written as in the line of a plan.
func read(t *testing.T, text string) *config.Limit {
	t.Helper()
	p, err := config.ParseText(text)
	if err != nil {
		t.Fatal(err)
	}
	return &p.Limit
}

// varying has a placeholder in each number that can have one.
const varying = "events {quota} 100 window 1h burst {quota} 50 algorithm token_bucket"

// TestNumbers: a limit has the numbers of a request. A bucket that holds nothing allows nothing.
func TestNumbers(t *testing.T) {
	l := read(t, varying)
	if !l.Varies() || read(t, "5/1m").Varies() {
		t.Error("a limit varies if it has placeholders")
	}
	for _, c := range []struct {
		quota string
		want  config.Numbers
	}{
		{"", config.Numbers{Events: 100, Burst: 50}},
		{"7", config.Numbers{Events: 7, Burst: 7}},
		{"0", config.Numbers{}},
	} {
		if got, err := l.Numbers(replacer(c.quota)); err != nil || got != c.want {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
	if got, err := read(t, "100/1m burst {quota}").Numbers(replacer("0")); err != nil || got.Events != 0 || got.Burst != 0 {
		t.Errorf("a burst of 0: %+v, %v", got, err)
	}
	for text, want := range map[string]string{
		"events {empty} window 1m":  "events: ",
		"5/1m burst {empty}":        "burst: ",
		"events {quota} window 1m":  "events: {quota} is not a whole number",
		"5/1m burst {quota}":        "burst: {quota} is not a whole number",
		"events {quota} 5 window 1": "",
	} {
		p, err := config.ParseText(text)
		if err != nil && want == "" {
			continue
		}
		if _, err = p.Numbers(replacer("many")); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestSamples: the sample of a limit has numbers that fit it.
func TestSamples(t *testing.T) {
	for text, want := range map[string]config.Numbers{
		"100/1m burst 5":           {Events: 100, Burst: 5},
		varying:                    {Events: 100, Burst: 50},
		"events {quota} window 1m": {Events: 1},
		"events {quota} window day timezone Asia/Tokyo":      {Events: 1},
		"events {quota} window 1m burst 9 algorithm gcra":    {Events: 9, Burst: 9},
		"events 7 window 1m burst {quota} algorithm gcra":    {Events: 7, Burst: 7},
		"events 0 window 1m burst {quota} 1 algorithm gcra":  {Burst: 1},
		"events {quota} 20 window 1m burst 9 algorithm gcra": {Events: 20, Burst: 9},
	} {
		l := read(t, text)
		if got := l.Sample(); got != want {
			t.Errorf("%s:\n%+v, want\n%+v", text, got, want)
		}
	}
}

// TestResolve: a limit of the algorithms has the numbers of a request and the options that are the same for all.
func TestResolve(t *testing.T) {
	l := read(t, "leaky_bucket 10/1s burst 4 mode queue max_wait 3s lease 9s align clock refill smooth timezone Europe/Paris")
	got, err := l.Resolve(l.Sample())
	if err != nil {
		t.Fatal(err)
	}
	paris := got.Location
	want := algorithms.Limit{Events: 10, Burst: 4, Window: time.Second, Mode: "queue", Align: "clock", Refill: "smooth", MaxWait: 3 * time.Second, Lease: 9 * time.Second, Location: paris}
	if !reflect.DeepEqual(got, want) || paris.String() != "Europe/Paris" {
		t.Errorf("%+v, want %+v", got, want)
	}
	for zone, want := range map[string]string{
		"Local":   "timezone Local differs from machine to machine: write a name such as Europe/Paris",
		"Nowhere": `timezone "Nowhere": unknown time zone Nowhere; write a name such as Europe/Paris`,
		"../etc":  "write a name such as Europe/Paris",
	} {
		l.Timezone = zone
		if _, err := l.Resolve(config.Numbers{Events: 1}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", zone, err, want)
		}
	}
}

// TestDescribe: a limit is described without what is usual, so that limits which mean the same have the same words.
func TestDescribe(t *testing.T) {
	for text, want := range map[string]string{
		"5/60s":                                                 "sliding_window_log 5/1m",
		"gcra 5/1m refill smooth burst 5":                       "token_bucket 5/1m",
		"token_bucket 5/1m burst 7":                             "token_bucket 5/1m burst 7",
		"token_bucket 0/1m burst 7":                             "token_bucket 0/1m",
		"token_bucket 5/1m burst {quota}":                       "token_bucket 5/1m burst {quota}",
		"gcra 5/1m refill interval":                             "token_bucket 5/1m interval",
		"leaky_bucket 5/1m mode meter max_wait 1s":              "leaky_bucket 5/1m",
		"leaky_bucket 5/1m mode queue max_wait 1s":              "leaky_bucket 5/1m queue max_wait 1s",
		"fixed_window 5/1m align clock":                         "fixed_window 5/1m",
		"fixed_window 5/1m align first_request":                 "fixed_window 5/1m first_request",
		"5/month timezone utc":                                  "fixed_window 5/month",
		"concurrency 5 lease 30s":                               "concurrency 5",
		"concurrency 5 lease 90s":                               "concurrency 5 lease 1m30s",
		"events {quota} 5 window 1h algorithm gcra":             "token_bucket {quota} 5/1h",
		"events {quota} window 1m burst {quota} algorithm gcra": "token_bucket {quota}/1m",
	} {
		if got := read(t, text).Describe(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if got := (&config.Limit{Algorithm: "none"}).Describe(); got != "none" {
		t.Errorf("an unknown algorithm: %s", got)
	}
}

// TestOver: a plan takes from the zone's limit what it leaves out. With another algorithm it takes only what all
// algorithms have, and concurrency has no window.
func TestOver(t *testing.T) {
	base := read(t, "token_bucket 100/1m burst 50 refill interval max_wait 2s")
	for text, want := range map[string]string{
		"events 5":         "token_bucket 5/1m interval burst 50",
		"window 1h":        "token_bucket 100/1h interval burst 50",
		"5/1h burst 7":     "token_bucket 5/1h interval burst 7",
		"algorithm gcra":   "token_bucket 100/1m", // another name, so that it is another algorithm
		"fixed_window 5/h": "fixed_window 5/1h",
		"concurrency 5":    "concurrency 5",
		"refill smooth":    "token_bucket 100/1m burst 50",
	} {
		over := read(t, text).Over(base)
		if got := over.Describe(); got != want || over.Wait() != 2*time.Second {
			t.Errorf("%s: %s, max_wait %v; want %s", text, got, over.Wait(), want)
		}
	}
	if got := read(t, "max_wait 0s").Over(base); got.Wait() != 0 {
		t.Errorf("a plan without a wait has one of %v", got.Wait())
	}
	calendar := read(t, "5/day timezone Asia/Tokyo")
	if got := read(t, "6/day").Over(calendar); got.Timezone != "Asia/Tokyo" {
		t.Errorf("a day is one in %q", got.Timezone)
	}
	if got := read(t, "6/day timezone Europe/Paris").Over(calendar); got.Timezone != "Europe/Paris" {
		t.Errorf("a day in Paris is one in %q", got.Timezone)
	}
	if got := read(t, "6/week").Over(calendar); got.Timezone != "" {
		t.Errorf("a week is one in %q", got.Timezone)
	}
}

// TestPlans: plans are limits over that of the zone, but for those without a limit, and are described in order.
func TestPlans(t *testing.T) {
	plans := &config.Plans{Of: "{plan}", Default: &config.Otherwise{Word: "free"}, Plans: map[string]*config.Plan{
		"pro": {Limit: *read(t, "events 500")}, "free": {}, "staff": {Unlimited: true},
	}}
	zone := config.Zone{Limit: *read(t, "100/1m"), Plan: plans}
	limits := zone.Limits()
	if len(limits) != 3 || limits[""] != zone.Limit || limits["pro"].MaxEvents.Number != 500 || limits["pro"].Window != fixed(time.Minute) || limits["free"].MaxEvents.Number != 100 {
		t.Errorf("%+v", limits)
	}
	const want = "plans of {plan}, free sliding_window_log 100/1m, pro sliding_window_log 500/1m, staff unlimited"
	if got := plans.Describe(limits); got != want+", default free" {
		t.Errorf("%s", got)
	}
	plans.Default = &config.Otherwise{Word: config.Reject, Status: 403}
	if got := plans.Describe(limits); got != want+", default reject 403" {
		t.Errorf("%s", got)
	}
	zone.Limit = config.Limit{Window: fixed(time.Minute)}
	if _, own := zone.Limits()[""]; own {
		t.Error("a zone without events has a limit of its own")
	}
}
