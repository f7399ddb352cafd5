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

// TestOverPassRoutes: the config of the docs sends requests above the limit to another upstream, which sees the mark. While
// that upstream does not answer, the usual one gets them. No client can send a mark, or have it removed.
func TestOverPassRoutes(t *testing.T) {
	t.Parallel()
	upstream := func(name string) string {
		return harness.StartBackend(t, func(_ *harness.Backend, w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, name, r.Header["X-Over-Limit"], r.Header["X_over_limit"])
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
	forged := [][]string{{"X-Over-Limit", "generous"}, {"X_Over_Limit", "generous"}, {"Connection", "X-Over-Limit"}}
	for _, header := range forged {
		ask("usual [] []", header...)
	}
	for _, header := range forged {
		ask("cheap [generous] []", header...)
	}
	s.MustLoad(local(fmt.Sprintf("127.0.0.1:%d", redistest.FreePort(t))))
	for range 2 {
		ask("usual [generous] []")
	}
}
