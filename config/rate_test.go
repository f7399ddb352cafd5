package config_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
)

// fixed is a window of a length.
func fixed(length time.Duration) config.Window {
	return config.Window{Duration: caddy.Duration(length)}
}

// TestRates: a rate is a whole number, with nginx's r or without, and a window as a word, a duration or a
// calendar window.
func TestRates(t *testing.T) {
	for text, want := range map[string]struct {
		events int64
		window config.Window
	}{
		"10/1s":            {10, fixed(time.Second)},
		"10r/s":            {10, fixed(time.Second)},
		"10/sec":           {10, fixed(time.Second)},
		"10/second":        {10, fixed(time.Second)},
		"100/m":            {100, fixed(time.Minute)},
		"100/min":          {100, fixed(time.Minute)},
		"100/minute":       {100, fixed(time.Minute)},
		"5/h":              {5, fixed(time.Hour)},
		"5/hour":           {5, fixed(time.Hour)},
		"5/d":              {5, fixed(24 * time.Hour)},
		"5/1d12h":          {5, fixed(36 * time.Hour)},
		"5/1.5h":           {5, fixed(90 * time.Minute)},
		"1000/day":         {1000, config.Window{Calendar: algorithms.Day}},
		"1000/week":        {1000, config.Window{Calendar: algorithms.Week}},
		"1000/month":       {1000, config.Window{Calendar: algorithms.Month}},
		"1000/year":        {1000, config.Window{Calendar: algorithms.Year}},
		"0/1s":             {0, fixed(time.Second)},
		"1000000000000/1s": {1e12, fixed(time.Second)},
	} {
		p, err := config.ParseText("rate " + text)
		if err != nil || p.MaxEvents.Number != want.events || p.Window != want.window {
			t.Errorf("%s: %+v, %v; want %+v", text, p, err, want)
		}
	}
	for text, want := range map[string]string{
		"100":                    "write events/window",
		"/s":                     "events must be <n> | <placeholder> [<n>] from 0 to 1000000000000, got ''",
		"r/s":                    "events must be <n> | <placeholder> [<n>] from 0 to 1000000000000, got ''",
		"1.5/s":                  "events must be <n> | <placeholder> [<n>] from 0 to 1000000000000, got '1.5'",
		"1k/s":                   "got '1k'",
		"-1/1s":                  "got '-1'",
		"9223372036854775808/1s": "got '9223372036854775808'",
		"1/":                     "window must be <duration>|day|week|month|year from 1ms to 3660d, got ''",
		"1/0s":                   "window must be <duration>|day|week|month|year from 1ms to 3660d, got '0s'",
		"1/-1s":                  "got '-1s'",
		"1/60":                   "got '60': it has no unit: write 60s or 60ms",
		"1/s/s":                  "got 's/s'",
		"1/Day":                  "got 'Day'",
		"1/{x}":                  "got '{x}': it cannot be a placeholder",
	} {
		if _, err := config.ParseText("rate " + text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestParseText: a limit outside of a config is one as in the line of a plan, of which TestDescribe reads others, or a number of
// events.
func TestParseText(t *testing.T) {
	for text, want := range map[string]string{
		"10/month timezone Asia/Tokyo": "fixed_window 10/month in Asia/Tokyo",
		"events 7 window 1h":           "sliding_window_log 7/1h",
		"  8/1h\t":                     "sliding_window_log 8/1h",
	} {
		p, err := config.ParseText(text)
		if err != nil || p.Unlimited || p.Describe() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if p, err := config.ParseText("unlimited"); err != nil || !p.Unlimited {
		t.Errorf("unlimited: %+v, %v", p, err)
	}
	for text, want := range map[string]int64{"100": 100, "0": 0, "token_bucket 9": 9} {
		if p, err := config.ParseText(text); err != nil || p.MaxEvents == nil || p.MaxEvents.Number != want || p.Window != (config.Window{}) {
			t.Errorf("%s: %+v, %v", text, p, err)
		}
	}
	for text, want := range map[string]string{
		"":                      "limit is empty: write one such as 500/1m",
		"   ":                   "limit is empty: write one such as 500/1m",
		"fast":                  `limit "fast": unknown algorithm`,
		"500/1m 600/1m":         `limit "500/1m 600/1m": rate takes one argument`,
		"500/1m rate 1/1s":      "rate '1/1s': events already specified; write one such as 500/1m",
		"500/1m events 3":       "events already specified; write one such as 500/1m",
		"burst":                 `limit "burst": burst must be <n> | <placeholder> [<n>] from 1 to`,
		"unlimited 5/1s":        "unlimited excludes all other options; write one such as 500/1m",
		"500/1m a://me:s3cr3t@": `limit "(hidden)": rate takes one`,
	} {
		_, err := config.ParseText(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), ":1;") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// FuzzParseText: nothing panics, and the words that describe a limit are read as the same limit, where they are those of
// a line of a plan: numbers and no words of other options.
func FuzzParseText(f *testing.F) {
	for _, seed := range []string{"500/1m", "token_bucket 10/1s burst 50", "concurrency 5", "100", "unlimited", "10/day", "events {x} 7 window 1h", "leaky_bucket 5/1s mode queue max_wait 3s", "gcra 5/1s refill interval", "burst {", "events"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := config.ParseText(text)
		if err != nil || p.Unlimited || p.Check() != nil {
			return
		}
		if _, err := p.FindAlgorithm(); err != nil {
			return
		}
		said := p.Describe()
		if p.Varies() || p.Refill+p.Mode+p.Align+p.Timezone != "" {
			return
		}
		if again, err := config.ParseText(said); err != nil || again.Describe() != said {
			t.Errorf("%q is %q, which is %q, %v", text, said, again.Describe(), err)
		}
	})
}

// replacer knows the placeholders {quota} and {empty}.
func replacer(quota string) *caddy.Replacer {
	r := caddy.NewReplacer()
	r.Set("quota", quota)
	r.Set("empty", "")
	return r
}

// FuzzWindowJSON: what is read as a window means the same when it is written as JSON, and as a Caddyfile has it.
func FuzzWindowJSON(f *testing.F) {
	for _, seed := range []string{`"10s"`, `10000000000`, `"1d2h"`, `"year"`, `"{x}"`, `"{x} 90s"`, `"{x} day"`, `""`, `null`, `-1`, `"{x} -1s"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var got, again struct {
			Window config.Window `json:"window" range:"1ms.."`
		}
		if option.JSON([]byte(`{"window": `+text+`}`), &got) != nil || got.Window == (config.Window{}) {
			return
		}
		written, err := json.Marshal(got)
		if err != nil || option.JSON(written, &again) != nil || again != got {
			t.Errorf("%s is %+v, which is written as %s, %v, and is %+v then", text, got, written, err, again)
		}
	})
}
