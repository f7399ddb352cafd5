package adaptive_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestAdaptiveValues: what the metrics of an adaptive limit say of requests of which each moment is known.
func TestAdaptiveValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := caddytest.Config(t)
		h := load(t, ctx, `{"name": "app", "key": "{http.request.header.Key}", "max_wait": "1s", "max": 1,
			"priority": ["{http.request.header.Class}", "gold"]}`)
		send := func(class string, takes, leaves time.Duration, err error) {
			go func() {
				w := httptest.NewRecorder()
				r := caddytest.Request(w, "203.0.113.7:1")
				r.Header.Set("Key", class)
				r.Header.Set("Class", class)
				ctx, leave := context.WithCancel(r.Context())
				defer time.AfterFunc(leaves, leave).Stop()
				_ = h.ServeHTTP(w, r.WithContext(ctx), caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
					select {
					case <-time.After(takes):
					case <-ctx.Done():
					}
					return err
				}))
			}()
			synctest.Wait()
		}
		const stays = time.Hour
		send("gold", 3*time.Second, stays, nil)    // 0 s to 3 s
		send("iron", time.Second, stays, nil)      // refused at 1 s
		send("iron", time.Second, stays/7200, nil) // leaves at 0.5 s
		expectAdaptive(t, ctx, "while one runs and two wait", map[string]float64{
			"limit{name=app}": 1, "running{class=gold,name=app}": 1, "waiting{class=others,name=app}": 2, "wait_seconds{class=gold,name=app}": 1,
		})
		time.Sleep(2500 * time.Millisecond)
		send("gold", 2*time.Second, stays, caddyhttp.Error(http.StatusBadGateway, errors.New("failed"))) // waits until 3 s, and fails at 5 s
		time.Sleep(3 * time.Second)
		send("iron", stays, 250*time.Millisecond, nil) // leaves while it runs
		time.Sleep(time.Second)
		synctest.Wait()
		expectAdaptive(t, ctx, "in the end", map[string]float64{ // who has left has its slot for the mean time
			"limit{name=app}": 1, "running{class=others,name=app}": 1, "wait_seconds{class=gold,name=app}": 2, "wait_seconds{class=others,name=app}": 3,
			"refused_total{class=others,name=app}":          2,
			"answers_total{class=gold,end=useful,name=app}": 1, "slot_seconds_total{class=gold,end=useful,name=app}": 3,
			"answers_total{class=gold,end=failed,name=app}": 1, "slot_seconds_total{class=gold,end=failed,name=app}": 2,
		})
		for class, want := range map[string]float64{"gold": 0.5, "others": 1.5} { // 0 + 0.5 and 1 + 0.5 + 0
			if got := waited(t, ctx, class); got != want {
				t.Errorf("requests of %s have waited for %v s, want %v", class, got, want)
			}
		}
	})
}

// expectAdaptive compares all metrics of adaptive limits, but for the mean time of a slot, which is a moving one.
func expectAdaptive(t *testing.T, ctx caddy.Context, when string, want map[string]float64) {
	t.Helper()
	got := make(map[string]float64)
	for name, value := range caddytest.Scrape(t, ctx) {
		if name, ok := strings.CutPrefix(name, "adaptive_"); ok && name != "slot_seconds{name=app}" {
			got[name] = value
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%s:\n%v, want\n%v", when, got, want)
	}
}

// waited is for how many seconds requests of a class have waited.
func waited(t *testing.T, ctx caddy.Context, class string) (sum float64) {
	t.Helper()
	families, err := ctx.GetMetricsRegistry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == "caddy_rate_limit_adaptive_wait_seconds" && l.GetValue() == class {
					sum += m.GetHistogram().GetSampleSum()
				}
			}
		}
	}
	return sum
}
