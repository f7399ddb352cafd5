package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay/engine"
)

// TestReplayOfErrorRoutes: zones in error routes count the requests that a limit refuses, but not those of callers of
// gRPC, by their headers in the log, and none if on_limit writes problems.
func TestReplayOfErrorRoutes(t *testing.T) {
	callers := []string{
		`"Accept":["text/html"]`, `"Accept":["application/json"]`, `"Content-Type":["application/grpc"]`, ``,
		`"Content-Type":["application/json"],"Mcp-Session-Id":["x"]`,
	}
	for _, c := range []struct {
		options string
		errors  int64 // how many of the callers come to error routes
	}{
		{``, 4},
		{`"on_limit": "problem", `, 0},
	} {
		config := fmt.Appendf(nil, `{"apps": {"http": {"servers": {"main": {"listen": [":8080"],
			"routes": [{"handle": [{"handler": "rate_limit", %s"rate_limits": {"all": {"max_events": 0, "window": "1h"}}}]}],
			"errors": {"routes": [{"handle": [{"handler": "rate_limit", "rate_limits": {"pages": {"max_events": 2, "window": "1h"}}}]}]}}}}}}`, c.options)
		var log strings.Builder
		for i, header := range callers {
			line := logLine(noon+float64(i), "203.0.113.7", "/")
			line = strings.Replace(line, `"method":"GET"`, `"method":"POST"`, 1)
			log.WriteString(strings.Replace(line, `"headers":{}`, `"headers":{`+header+`}`, 1))
		}
		r, err := engine.Replay(config, &replay.Options{Logs: []string{"-"}, Input: strings.NewReader(log.String())})
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]string)
		for _, z := range r.Zones {
			got[z.Name] = fmt.Sprint(z.Requests, " ", z.Refused)
		}
		want := map[string]string{"all": "5 5", "pages": fmt.Sprint(c.errors, " ", max(0, c.errors-2))}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", c.options, got, want)
		}
	}
}
