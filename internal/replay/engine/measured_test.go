package engine_test

import (
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/replay"
)

// TestReplayMeasures: in a replay, requests cost what the log says that they took.
func TestReplayMeasures(t *testing.T) {
	const limit = `"key": "{http.vars.client_ip}", "algorithm": "fixed_window", "window": "1h", `
	var log strings.Builder
	for i := range 5 {
		log.WriteString(strings.Replace(logLineOf(noon+float64(10*i+5), 3.001, "203.0.113.7", "/", 200), `"size":1`, `"size":2000`, 1))
	}
	r := replayed(t, `"bytes": {`+limit+`"max_events": 10000, "cost_measured": {"of": "bytes"}}, "long": {`+limit+`"max_events": 10000, "cost_measured": {"of": "upstream_time"}}, "time": {`+
		limit+`"max_events": 14000, "cost_measured": {"of": "response_time"}}`, log.String(), replay.Options{})
	for i, want := range []int64{0, 2, 0} { // five times 2000 bytes; three times 3 s, which leave 1 s
		if z := r.Zones[i]; z.Refused != want {
			t.Errorf("zone %s refuses %d requests, want %d", z.Name, z.Refused, want)
		}
	}
	said := ""
	for _, u := range r.Unknown {
		if u.Option == "cost_measured" {
			said += u.Zone + ": " + u.What + ";"
		}
	}
	if said != "long: when responses began;" {
		t.Errorf("the report says that it does not know: %s", said)
	}
}
