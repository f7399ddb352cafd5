package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay/engine"
)

// TestReplayAdviceIsGood: a replay with what a replay advises does better with the same log.
func TestReplayAdviceIsGood(t *testing.T) {
	t.Run("proxy", func(t *testing.T) {
		var log strings.Builder
		log.WriteString(logLine(noon-1, "192.0.2.1", "/")) // from no proxy
		for i := range 20 {
			line := strings.Replace(logLine(noon+float64(i), "10.0.0.5", "/"), `"headers":{}`, fmt.Sprintf(`"headers":{"X-Forwarded-For":["198.51.100.%d"]}`, i), 1)
			log.WriteString(line)
		}
		run := func(server string) (refused int64, said string) {
			config := strings.Replace(string(replayConfig(`"z": {"key": "{http.vars.client_ip}", "max_events": 3, "window": "1h"}`)), `"listen"`, server+`"listen"`, 1)
			r, err := engine.Replay([]byte(config), &replay.Options{Logs: []string{"-"}, Input: strings.NewReader(log.String())})
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range r.Unknown {
				if _, fix, ok := strings.Cut(u, "counts: "); ok && advice.Of(fix) != nil && strings.Contains(u, "from 10.0.0.5 (") {
					said += advice.Of(fix).Name()
				}
			}
			return r.Zones[0].Refused, said
		}
		before, said := run("")
		after, still := run(`"trusted_proxies": {"source": "static", "ranges": ["10.0.0.5"]}, "trusted_proxies_strict": 1,`)
		if before != 17 || said != "replay/trusted_proxies" || after != 0 || still != "" {
			t.Errorf("%d of 21 are refused (%s), and then %d (%s), want 17 and 0", before, said, after, still)
		}
	})
	t.Run("hours", func(t *testing.T) {
		var log strings.Builder
		for i := range 3600 { // 150 clients with bursts of eight, and a scraper that stays below those in each minute
			if i%20 == 0 && i < 3000 {
				log.WriteString(strings.Repeat(logLine(noon+float64(i), fmt.Sprintf("192.0.2.%d", i/20), "/"), 8))
			}
			if i%9 == 0 {
				log.WriteString(logLine(noon+float64(i), "198.51.100.9", "/"))
			}
		}
		z := replayed(t, clients100, log.String(), replay.Options{Suggest: true}).Zones[0]
		who := z.Suggestion.Reasons[len(z.Suggestion.Reasons)-1]
		said, fix, _ := strings.Cut(who, ": ")
		if a := advice.Of(fix); z.Suggestion.Limit != "" || a == nil || a.Name() != "replay/hours" || !strings.Contains(said, "198.51.100.9 used more than 20") {
			t.Fatalf("%q: %q", z.Suggestion.Limit, who)
		}
		rate := strings.TrimSuffix(fix[strings.Index(fix, "=")+1:], "'")
		z = replayed(t, clients100, log.String(), replay.Options{Tries: []replay.Try{{Zone: z.Name, Rate: rate}}}).Zones[0]
		if w := z.WhatIf[1]; w.Limit != rate || w.KeysRefused != 1 || w.Refused != 400-20 {
			t.Errorf("%s refuses %d requests of %d clients, want 380 of the scraper alone", w.Limit, w.Refused, w.KeysRefused)
		}
	})
	t.Run("suggestion", func(t *testing.T) {
		at := func(limit string, o replay.Options) *replay.Zone {
			return replayed(t, strings.Replace(clients100, "100", limit, 1), sampleLog(t), o).Zones[0]
		}
		people := func(z *replay.Zone) (n int) {
			for _, k := range z.Top {
				if len(k.Signs) > 0 {
					n++
				}
			}
			return n
		}
		before := at("20", replay.Options{Suggest: true}) // where somebody has begun
		made := before.Suggestion
		if made == nil || made.Events == 0 || people(before) == 0 {
			t.Fatalf("%+v, and %d that look like people are refused", made, people(before))
		}
		who := made.Reasons[len(made.Reasons)-1]
		after := at(fmt.Sprint(made.Events), replay.Options{})
		if a := advice.Of(who); a == nil || a.Name() != "replay/suggestion" || after.KeysRefused == 0 || people(after) > 0 {
			t.Errorf("%s: then %d keys are refused, %d of them people", who, after.KeysRefused, people(after))
		}
		for _, k := range after.Top {
			if !strings.Contains(who, k.Key) {
				t.Errorf("%s is refused, which is not among %s", k.Key, who)
			}
		}
	})
}
