package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/admin"
	"github.com/seed-161337e5/caddyratelimit/internal/replay"
)

// TestReplaySaysThatMarksChooseRoutes: a replay does not follow the marks of over pass. It says so where a route looks at one,
// and only there.
func TestReplaySaysThatMarksChooseRoutes(t *testing.T) {
	const config = `{"apps": {"http": {"servers": {"main": {"listen": [":8080"], "routes": [
		{"handle": [{"handler": "rate_limit", "rate_limits": {"soft": {"max_events": 1, "window": "1h"%s}}}]},
		{"match": [%s], "handle": [{"handler": "static_response"}]}]}}}}}`
	const over = `, "over": "pass", "over_header": "x-over"`
	for _, c := range []struct {
		options, match string
		want           bool
	}{
		{over, `{"header": {"X-Over": ["soft"]}}`, true},
		{over, `{"vars": {"{http.rate_limit.over}": ["soft"]}}`, true},
		{over, `{"header": {"X-Other": ["soft"]}}`, false},
		{over, `{"path": ["/x-over"]}`, false},
		{"", `{"header": {"X-Over": ["soft"]}}`, false},
	} {
		o := replay.Options{Logs: []string{"-"}, Input: strings.NewReader(logLine(noon, "203.0.113.7", "/") + logLine(noon+1, "203.0.113.7", "/"))}
		r, err := admin.AdminAPI{}.Replay(fmt.Appendf(nil, config, c.options, c.match), &o)
		if err != nil {
			t.Fatal(err)
		}
		said := false
		for _, u := range r.Unknown {
			said = said || u.Zone == "soft" && u.Option == "over" && u.What == "routes that the mark of over pass chooses"
		}
		if said != c.want {
			t.Errorf("%s with %s: %+v, want the mark: %v", c.options, c.match, r.Unknown, c.want)
		}
	}
}
