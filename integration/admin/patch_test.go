//go:build deep

package admin_test

import (
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestPatchByID: a handler with an @id has its limit changed by one request to the admin API, as
// docs/admin.md shows, and what clients have used stays used.
func TestPatchByID(t *testing.T) {
	t.Parallel()
	s := harness.StartCaddy(t, harness.Caddyfile("", `
		rate_limit {
			zone clients {
				key {client_ip}
				rate 3/1h
			}
		}
		respond ok`))
	const field = "/rate_limits/clients/max_events"
	handler := strings.TrimSuffix(s.Find("clients", "max_events"), field)
	if err := s.Configure("POST", handler+"/@id", "application/json", `"limits"`); err != nil {
		t.Fatal(err)
	}
	if n := s.Admitted(harness.NewClient(t, ""), 5, "/"); n != 3 {
		t.Fatalf("%d admitted, want 3", n)
	}
	if err := s.Patch("/id/limits"+field, "5"); err != nil {
		t.Fatal(err)
	}
	if n := s.Admitted(harness.NewClient(t, ""), 5, "/"); n != 2 {
		t.Errorf("%d admitted after the change, want 2", n)
	}
}
