//go:build deep

package limits_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// TestExceededRoutes: the config of the docs sends what a dry run would refuse to another upstream, and tells both in a header. While that
// upstream does not answer, the usual one gets all. No client can send that header, or have it removed.
func TestExceededRoutes(t *testing.T) {
	t.Parallel()
	upstream := func(name string) string {
		return harness.StartBackend(t, func(_ *harness.Backend, w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, name, r.Header["Overlimit"])
		}).Address
	}
	_, text, _ := strings.Cut(harness.ReadPage(t, harness.Root+"/docs/policies.md"), "## Let pass what is above the limit\n")
	usual, config := upstream("usual "), regexp.MustCompile("(?s)```caddyfile\n(.*?)```").FindStringSubmatch(text)[1]
	local := func(cheap string) string {
		config := strings.NewReplacer("localhost:9001", cheap, "100/1m", "3/1h").Replace(config)
		return harness.Localize(config, harness.Memory, usual)
	}
	s := harness.StartCaddy(t, local(upstream("cheap ")))
	client := harness.NewClient(t, "")
	ask := func(want string, header ...string) {
		t.Helper()
		if a := s.Get(client, "/", header...); a.Status != http.StatusOK || a.Body != want || a.Header["Ratelimit"] != nil || a.Header["Ratelimit-Policy"] != nil {
			t.Errorf("with %v: status %d, %s, %v, want %s", header, a.Status, a.Body, a.Header, want)
		}
	}
	forged := [][]string{{"Overlimit", "true"}, {"overlimit", "false"}, {"Connection", "Overlimit"}}
	for _, header := range forged {
		ask("usual [false]", header...)
	}
	for _, header := range forged {
		ask("cheap [true]", header...)
	}
	s.MustLoad(local(fmt.Sprintf("127.0.0.1:%d", redistest.FreePort(t))))
	for range 2 {
		ask("usual [true]")
	}
}
