package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay/engine"
)

// TestReplaySaysThatZonesChooseRoutes: a replay does not follow routes that look at what a dry run would refuse. It says so where one does,
// and only there.
func TestReplaySaysThatZonesChooseRoutes(t *testing.T) {
	const config = `{"apps": {"http": {"servers": {"main": {"listen": [":8080"], "routes": [
		{"handle": [{"handler": "rate_limit", "rate_limits": {"soft": {"max_events": 1, "window": "1h", "enforce": 0}}}]},
		{"match": [%s], "handle": [{"handler": "static_response"}]}]}}}}}`
	for _, c := range []struct {
		match string
		want  bool
	}{
		{`{"vars": {"{http.rate_limit.exceeded.soft}": ["true"]}}`, true},
		{`{"vars": {"{http.rate_limit.exceeded.other}": ["true"]}}`, false},
		{`{"path": ["/exceeded.soft"]}`, false},
	} {
		o := replay.Options{Logs: []string{"-"}, Input: strings.NewReader(logLine(noon, "203.0.113.7", "/") + logLine(noon+1, "203.0.113.7", "/"))}
		r, err := engine.Replay(fmt.Appendf(nil, config, c.match), &o)
		if err != nil {
			t.Fatal(err)
		}
		said := false
		for _, u := range r.Unknown {
			said = said || strings.HasPrefix(u, "zone soft, enforce: what looks at {http.rate_limit.exceeded.soft}, such as routes; ")
		}
		if said != c.want {
			t.Errorf("with %s: %+v, want it said: %v", c.match, r.Unknown, c.want)
		}
	}
}
