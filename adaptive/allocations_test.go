//go:build !race

package adaptive_test

import (
	"net/http"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// discarded is a response that goes nowhere.
type discarded struct{ header http.Header }

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) Write(p []byte) (int, error) { return len(p), nil }
func (d *discarded) WriteHeader(int)             {}

// TestAllocations: a request that gets its slot at once allocates one thing, the writer that sees when its response begins:
// handlers may have it for longer than the request lasts. With the race detector, pools lose what they have at random.
func TestAllocations(t *testing.T) {
	h := load(t, caddytest.Config(t), `{"key": "{http.vars.user}"}`)
	w := &discarded{make(http.Header)}
	r := caddytest.Request(w, "203.0.113.7:1")
	caddyhttp.SetVar(r.Context(), "user", "a")
	var upstream caddyhttp.Handler = caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusOK)
		return nil
	})
	n := testing.AllocsPerRun(1000, func() {
		if err := h.ServeHTTP(w, r, upstream); err != nil {
			t.Fatal(err)
		}
	})
	if n > 1 {
		t.Errorf("a request with a slot allocates %v times, want its writer alone", n)
	}
}
