//go:build deep

package faults_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestOnStoreErrorOfZones: zones on one route can have different values of on_store_error, and show the
// share of the limit that the instance applies.
func TestOnStoreErrorOfZones(t *testing.T) {
	t.Parallel()
	dead := redistest.FreePort(t)
	zone := func(name string, events int, policy string) string {
		return fmt.Sprintf("zone %s {\n events %d\n window 1h\n %s\n }\n", name, events, policy)
	}
	route := func(path, zones, more string) string {
		return "handle " + path + " {\n rate_limit {\n" + zones + more + "\n}\n respond ok\n}\n"
	}
	s := harness.StartCaddy(t, harness.Caddyfile(`
	rate_limit {
		store redis {
			address 127.0.0.1:`+strconv.Itoa(dead)+`
		}
		on_store_error local
		instances 4
	}`,
		route("/local", zone("a", 40, ""), "")+
			route("/two", zone("b", 12, "")+zone("c", 400, ""), "")+
			route("/mixed", zone("d", 1, "on_store_error allow")+zone("e", 8, ""), "")+
			route("/denied", zone("f", 40, "")+zone("g", 40, "on_store_error deny"), "")+
			route("/allowed", zone("h", 0, ""), "on_store_error allow")+
			route("/instances", zone("i", 40, ""), "instances 10")))
	client := harness.NewClient(t, "")
	for _, c := range []struct {
		path     string
		admitted int
		then     int
		policy   string
	}{
		{"/local", 10, 429, `"a";q=10;w=3600`},
		{"/two", 3, 429, `"b";q=3;w=3600, "c";q=100;w=3600`},
		{"/mixed", 2, 429, `"e";q=2;w=3600`},
		{"/denied", 0, 503, ""},
		{"/allowed", 20, 200, ""},
		{"/instances", 4, 429, `"i";q=4;w=3600`},
	} {
		admitted, last := 0, harness.Answer{}
		for range 20 {
			if last = s.Get(client, c.path); last.Status == http.StatusOK {
				admitted++
			}
		}
		if admitted != c.admitted || last.Status != c.then || last.Header.Get("RateLimit-Policy") != c.policy {
			t.Errorf("%s: %d admitted, then %d with policy %s; want %d, %d and %s",
				c.path, admitted, last.Status, last.Header.Get("RateLimit-Policy"), c.admitted, c.then, c.policy)
		}
		if (last.Header.Get("Retry-After") != "") != (c.then != http.StatusOK) {
			t.Errorf("%s: Retry-After %q with status %d", c.path, last.Header.Get("Retry-After"), last.Status)
		}
	}
	lines := slices.DeleteFunc(withoutRefusals(s), func(l harness.Line) bool { return strings.HasPrefix(l.Message, "it never refuses: ") })
	if len(lines) != 1 || lines[0].Message != goneLine {
		t.Errorf("want one line, for the one store of all routes: %v", lines)
	}
}

// withoutRefusals returns this module's lines about anything but refusals, and but what is said of the
// store at start.
func withoutRefusals(s *harness.Server) []harness.Line {
	return slices.DeleteFunc(s.LinesOf(harness.OurLogger), func(l harness.Line) bool {
		return strings.HasPrefix(l.Message, "rate limit exceeded") || l.Message == "the rate limit store answers" ||
			strings.HasPrefix(l.Message, "until the rate limit store answers")
	})
}
