package limit_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/limit"
)

// replacer knows the placeholders {quota} and {empty}.
func replacer(quota string) *caddy.Replacer {
	r := caddy.NewReplacer()
	r.Set("quota", quota)
	r.Set("empty", "")
	return r
}

// TestAmountJSON: an amount is a number, a placeholder, or a placeholder with a fallback, and is written as it was
// read. What is none of these is an error of Check, which knows the option.
func TestAmountJSON(t *testing.T) {
	for text, want := range map[string]limit.Amount{
		`100`:                 {Number: 100},
		`-1`:                  {Number: -1},
		`9223372036854775807`: {Number: math.MaxInt64},
		`"{quota}"`:           {From: "quota"},
		`"{quota} 100"`:       {From: "quota", Number: 100, Fallback: true},
		`"{quota} 0"`:         {From: "quota", Fallback: true},
	} {
		var got limit.Amount
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
		if written, err := json.Marshal(got); err != nil || string(written) != text {
			t.Errorf("%s is written as %s, %v", text, written, err)
		}
	}
	for _, text := range []string{`1.5`, `9223372036854775808`, `"100"`, `""`, `"{quota} many"`, `"{quota"`, `true`, `[]`, `{}`} {
		var got limit.Amount
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		err := got.Check("burst")
		if want := `burst must be a whole number or a placeholder such as "{http.vars.quota} 100", got ` + text; err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestAmountOfRequest: the value of the placeholder counts, then the fallback. Without either it is an error that
// names the placeholder, and not its value.
func TestAmountOfRequest(t *testing.T) {
	for _, c := range []struct {
		amount limit.Amount
		quota  string
		want   int64
		err    string
	}{
		{limit.Amount{Number: 7}, "100", 7, ""},
		{limit.Amount{From: "quota"}, "100", 100, ""},
		{limit.Amount{From: "quota"}, "-3", -3, ""},
		{limit.Amount{From: "quota"}, "", 0, "{quota}"},
		{limit.Amount{From: "unknown"}, "", 0, "{unknown}"},
		{limit.Amount{From: "quota"}, "s3cr3t", 0, "{quota} is not a whole number"},
		{limit.Amount{From: "quota", Number: 7, Fallback: true}, "s3cr3t", 0, "{quota} is not a whole number"},
		{limit.Amount{From: "quota", Number: 7, Fallback: true}, "9223372036854775808", 0, "{quota} is not a whole number"},
		{limit.Amount{From: "quota", Number: 7, Fallback: true}, "", 7, ""},
		{limit.Amount{From: "quota", Fallback: true}, "", 0, ""},
	} {
		got, err := c.amount.Resolve(replacer(c.quota))
		if c.err == "" && (err != nil || got != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "s3cr3t")) {
			t.Errorf("%v of %q: %d, %v; want %d, %q", c.amount, c.quota, got, err, c.want, c.err)
		}
	}
}

// TestWindowJSON: a window is a duration or a word of the calendar, and
// means the same when it is written.
func TestWindowJSON(t *testing.T) {
	for text, want := range map[string]struct {
		window  limit.Window
		written string
	}{
		`"10s"`:       {fixed(10 * time.Second), `10000000000`},
		`10000000000`: {fixed(10 * time.Second), `10000000000`},
		`"1d"`:        {fixed(24 * time.Hour), `86400000000000`},
		`"month"`:     {limit.Window{Calendar: algorithms.Month}, `"month"`},
	} {
		var got, again limit.Window
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want.window {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want.window)
		}
		written, err := json.Marshal(got)
		if err != nil || string(written) != want.written || json.Unmarshal(written, &again) != nil || again != got {
			t.Errorf("%s is written as %s, %v, which is %+v", text, written, err, again)
		}
	}
	for text, want := range map[string]string{
		`"fast"`:        `window must be a duration such as "10s", or day, week, month or year`,
		`"10"`:          `window must be a duration such as "10s", or day, week, month or year`,
		`"{length} 1m"`: `window must not be a placeholder, got '{length} 1m': write a duration such as 10s, or day, week, month or year, and a plan for each other window`,
		`true`:          `window must be a duration such as "10s", or day, week, month or year`,
	} {
		got := fixed(time.Minute)
		if err := json.Unmarshal([]byte(text), &got); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// FuzzWindowJSON: what is read as a window means the same when it is written as JSON, and as a Caddyfile has it.
func FuzzWindowJSON(f *testing.F) {
	for _, seed := range []string{`"10s"`, `10000000000`, `"1d2h"`, `"year"`, `"{x}"`, `"{x} 90s"`, `"{x} day"`, `""`, `null`, `-1`, `"{x} -1s"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var got, again limit.Window
		if json.Unmarshal([]byte(text), &got) != nil {
			return
		}
		written, err := json.Marshal(got)
		if err != nil || json.Unmarshal(written, &again) != nil || again != got {
			t.Errorf("%s is %+v, which is written as %s, %v, and is %+v then", text, got, written, err, again)
		}
	})
}

// TestLengthOfWindow: a window has its length, and one of the calendar that of the longest.
func TestLengthOfWindow(t *testing.T) {
	for w, want := range map[limit.Window]time.Duration{
		fixed(time.Second):           time.Second,
		{Calendar: algorithms.Day}:   24 * time.Hour,
		{Calendar: algorithms.Week}:  168 * time.Hour,
		{Calendar: algorithms.Month}: 31 * 24 * time.Hour,
		{Calendar: algorithms.Year}:  366 * 24 * time.Hour,
	} {
		if got := w.Length(); got != want {
			t.Errorf("%v is %v long, want %v", w, got, want)
		}
	}
}
