//go:build deep

package admin_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestResetOfUnmetLimits: after a reload, a Caddy does not know which limits requests have
// brought before it. A look at a key says which limit it is about. A reset that may leave
// something says so, and what to do about it, and that works.
func TestResetOfUnmetLimits(t *testing.T) {
	t.Parallel()
	harness.EachStore(t, func(t *testing.T, store string) {
		config := harness.Caddyfile("", `
			rate_limit {
				zone brought {
					key       {header.X-Client}
					algorithm token_bucket
					events    {header.X-Events} 2
					window    1h
				}
				zone written {
					key    {header.X-Client}
					events 1000
					window 1h
				}
				`+store+`
			}
			respond ok`)
		s := harness.StartCaddy(t, config)
		client := harness.NewClient(t, "")
		ask := func(want int) {
			t.Helper()
			if a := s.Get(client, "/", "X-Client", "a", "X-Events", "1"); a.Status != want {
				t.Errorf("status %d, want %d", a.Status, want)
			}
		}
		reset := func(zone string) string {
			t.Helper()
			output, err := s.Shell(`"$CADDY" rate-limit reset --address unix/"$ADMIN" ` + zone + ` a 2>&1`)
			if err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			return output
		}
		ask(http.StatusOK)
		ask(http.StatusTooManyRequests)
		s.MustLoad(strings.Replace(config, "respond ok", "respond new", 1))

		var seen struct {
			Used    int    `json:"used"`
			Assumed string `json:"assumed"`
		}
		s.Ask("/rate_limit/zones/brought/key?key=a", &seen)
		if seen.Used != 0 || seen.Assumed != "token_bucket 2/1h" {
			t.Errorf("the key shows %d used under %q", seen.Used, seen.Assumed)
		}
		if output := reset("brought"); !strings.Contains(output, "reset it again after its next request") {
			t.Errorf("the reset says %q, want a warning", output)
		}
		ask(http.StatusTooManyRequests)
		reset("brought")
		ask(http.StatusOK)
		if output := reset("written"); output != "Reset a in zone written.\n" {
			t.Errorf("a reset that leaves nothing says %q", output)
		}
		s.Sound(t)
	})
}
