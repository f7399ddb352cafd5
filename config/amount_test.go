package config_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/config"
)

// replacer knows the placeholders {quota} and {empty}.
func replacer(quota string) *caddy.Replacer {
	r := caddy.NewReplacer()
	r.Set("quota", quota)
	r.Set("empty", "")
	return r
}

// TestAmountOfRequest: the value of the placeholder counts, then the fallback. Without either it is an error that
// names the placeholder, and not its value.
func TestAmountOfRequest(t *testing.T) {
	for _, c := range []struct {
		amount config.Amount
		quota  string
		want   int64
		err    string
	}{
		{config.Amount{Number: 7}, "100", 7, ""},
		{config.Amount{From: "quota"}, "100", 100, ""},
		{config.Amount{From: "quota"}, "-3", -3, ""},
		{config.Amount{From: "quota"}, "", 0, "{quota}"},
		{config.Amount{From: "unknown"}, "", 0, "{unknown}"},
		{config.Amount{From: "quota"}, "s3cr3t", 0, "{quota} is not a whole number"},
		{config.Amount{From: "quota", Number: 7, Fallback: true}, "s3cr3t", 0, "{quota} is not a whole number"},
		{config.Amount{From: "quota", Number: 7, Fallback: true}, "9223372036854775808", 0, "{quota} is not a whole number"},
		{config.Amount{From: "quota", Number: 7, Fallback: true}, "", 7, ""},
		{config.Amount{From: "quota", Fallback: true}, "", 0, ""},
	} {
		got, err := c.amount.Resolve(replacer(c.quota))
		if c.err == "" && (err != nil || got != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "s3cr3t")) {
			t.Errorf("%v of %q: %d, %v; want %d, %q", c.amount, c.quota, got, err, c.want, c.err)
		}
	}
}

// FuzzWindowJSON: what is read as a window means the same when it is written as JSON, and as a Caddyfile has it.
func FuzzWindowJSON(f *testing.F) {
	for _, seed := range []string{`"10s"`, `10000000000`, `"1d2h"`, `"year"`, `"{x}"`, `"{x} 90s"`, `"{x} day"`, `""`, `null`, `-1`, `"{x} -1s"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var got, again config.Window
		if json.Unmarshal([]byte(text), &got) != nil {
			return
		}
		written, err := json.Marshal(got)
		if err != nil || json.Unmarshal(written, &again) != nil || again != got {
			t.Errorf("%s is %+v, which is written as %s, %v, and is %+v then", text, got, written, err, again)
		}
	})
}
