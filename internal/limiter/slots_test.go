//go:build !race

package limiter_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/gate"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// adaptiveZone returns an adaptive zone with a gate.
func adaptiveZone(tb testing.TB, name string) *zone.Zone {
	tb.Helper()
	template, err := key.New("{http.request.header.X-Key}", 0, 0)
	if err != nil {
		tb.Fatal(err)
	}
	a := &zone.Adaptive{Min: 100, MaxWait: time.Second}
	z, err := zone.New(zone.Spec{Name: name, Template: template, MissingKey: zone.MissingShare, Adaptive: a}, &stats.Counters{Keys: topk.New(time.Hour)})
	if err != nil {
		tb.Fatal(err)
	}
	z.Gate = gate.New(a.Options())
	return z
}

// discarded is a response that goes nowhere.
type discarded struct{ header http.Header }

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) Write(p []byte) (int, error) { return len(p), nil }
func (d *discarded) WriteHeader(int)             {}

type noErrorRoutes struct{}

func (noErrorRoutes) ErrorRoutes(*http.Request) bool { return false }

// adaptiveRequest returns what a request of an adaptive zone does whose upstream has room: it is decided, served, and
// gives its slot back.
func adaptiveRequest(tb testing.TB, zones ...*zone.Zone) (decide, serve func()) {
	l := limiter.New(limiter.Config{Zones: zones, Logger: zap.NewNop()})
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.Header.Set("X-Key", "a")
	w := &discarded{make(http.Header)}
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, nil)
	var upstream caddyhttp.Handler = caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusOK)
		return nil
	})
	release := func() { // what a response does to its slots, without the writer that sees it begin
		v := l.Decide(r)
		c := v.Release()
		c.Judge(http.StatusOK, w.header)
		c.Release()
		c.End()
	}
	return release, func() {
		v := l.Decide(r)
		if err := v.Release().Serve(w, r, upstream, noErrorRoutes{}); err != nil {
			tb.Fatal(err)
		}
	}
}

// TestSlotWithoutAllocations: a request that gets its slots at once allocates nothing for them. The writer that sees
// when its response begins is the only allocation: handlers may have it for longer than the request lasts. With the race
// detector, pools lose what they have at random.
func TestSlotWithoutAllocations(t *testing.T) {
	a, b := adaptiveZone(t, "a"), adaptiveZone(t, "b")
	decide, serve := adaptiveRequest(t, a, b)
	for range 100 {
		serve() // so that pools and counters have what they need
	}
	if n := testing.AllocsPerRun(1000, decide); n != 0 {
		t.Errorf("a decision with two slots allocates %v times", n)
	}
	if n := testing.AllocsPerRun(1000, serve); n > 1 {
		t.Errorf("a request with two slots allocates %v times, want its writer alone", n)
	}
	for _, z := range []*zone.Zone{a, b} {
		if s := z.Gate.State(); s.Running != 0 || s.Ends()[gate.Useful].Count < 2000 {
			t.Errorf("%+v in the end", s)
		}
	}
}
