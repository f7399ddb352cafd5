//go:build deep

package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/samplelog"
)

// TestReplaySuggestsNoOffice: no limit is suggested that refuses people who share an address, in logs with
// and without cookies.
func TestReplaySuggestsNoOffice(t *testing.T) {
	for name, o := range map[string]samplelog.Options{
		"JSON": {}, "JSON without cookies": {NoCookies: true}, "combined": {Combined: true},
	} {
		var log strings.Builder
		o.Lines, o.Clients, o.Offices, o.Start, o.Span, o.Seed = 60_000, 2000, 3, samplelog.Day, 24*time.Hour, 1
		if err := samplelog.Write(&log, o); err != nil {
			t.Fatal(err)
		}
		z := replayed(t, clients100, log.String(), replay.Options{Suggest: true, Zone: "clients"}).Zones[0]
		s, reasons := z.Suggestion, strings.Join(z.Suggestion.Reasons, "; ")
		if !strings.Contains(reasons, "and all 3 that look like several, used at most") {
			t.Errorf("%s: the offices are not recognized: %s", name, reasons)
		}
		if o.Combined && (s.Limit != "150/1m" || !strings.Contains(reasons, "look at who is above it: 203.0.113.7")) {
			t.Errorf("%s: %+v, want 150/1m, which refuses only 203.0.113.7", name, s)
		}
		offices := 0
		for i, key := range z.PeakKeys[:10] {
			if strings.HasPrefix(key, "203.0.113.1") {
				offices++
				for _, ranks := range z.Peaks {
					if peak := ranks[1]; ranks[0] == int64(i)+1 && s.Limit != "" && peak > s.Events {
						t.Errorf("%s: %d is suggested, and the office %s used %d", name, s.Events, key, peak)
					}
				}
			}
		}
		if offices != 3 {
			t.Errorf("%s: %d offices are among the ten busiest, want 3: this shows nothing", name, offices)
		}
	}
}
