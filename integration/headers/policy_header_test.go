package headers_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestWindowStaysUnderOverrides: RateLimit-Policy keeps w under each kind of override of each algorithm, so that a
// client that reads it does not break just when support helps it.
func TestWindowStaysUnderOverrides(t *testing.T) {
	t.Parallel()
	limits := map[string]string{
		"log": "sliding_window_log", "counter": "sliding_window_counter", "fixed": "fixed_window",
		"bucket": "token_bucket", "gcra": "gcra", "leaky": "leaky_bucket",
	}
	site := "rate_limit {\nheaders draft-10\n"
	for name, algorithm := range limits {
		site += fmt.Sprintf("zone %s {\nmatch path /%[1]s\nkey {header.User}\nalgorithm %s 60/1m\noverrides\n}\n", name, algorithm)
		site += fmt.Sprintf("zone %s_plans {\nmatch path /%[1]s_plans\nkey {header.User}\nplan {header.Plan} {\nfree %s 60/1m\npro %[2]s 600/1m\ndefault free\n}\noverrides\n}\n", name, algorithm)
	}
	site += "zone slots {\nmatch path /slots\nkey {header.User}\nalgorithm concurrency 5\noverrides\n}\n" + harness.Memory + "\n}\nrespond ok"
	s, client := harness.StartCaddy(t, harness.Caddyfile("", site)), harness.NewClient(t, "")
	check := func(zone, want string) {
		t.Helper()
		if got := s.Get(client, "/"+zone, "User", "u").Header.Values("RateLimit-Policy"); !slices.Equal(got, []string{`"` + zone + `";` + want}) {
			t.Errorf("%s: %s, want %s", zone, got, want)
		}
	}
	set := func(zone string, limit ...string) {
		t.Helper()
		if output, err := s.RateLimit(append([]string{"set", zone, "u"}, limit...)...); err != nil {
			t.Errorf("%s %v: %v\n%s", zone, limit, err, output)
		}
	}
	for name, algorithm := range limits {
		check(name, "q=60;w=60")
		for _, c := range [][2]string{{"600/1m", "q=600;w=60"}, {"90", "q=90;w=60"}, {"100/1h", "q=100;w=3600"}, {algorithm + " 30/1m", "q=30;w=60"}} {
			set(name, c[0])
			check(name, c[1])
		}
		set(name, "--clear")
		check(name, "q=60;w=60")
		plans := name + "_plans"
		check(plans, "q=60;w=60")
		set(plans, "--plan", "pro")
		check(plans, "q=600;w=60")
		set(plans, "90/1m")
		check(plans, "q=90;w=60")
	}
	set("slots", "9")
	check("slots", `q=9;qu="concurrent-requests"`) // slots have no window
}
