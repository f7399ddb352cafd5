package adaptive_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	_ "github.com/seed-161337e5/caddyratelimit" // for the place of the directive
	"github.com/seed-161337e5/caddyratelimit/adaptive"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// load loads a handler into a config.
func load(t testing.TB, ctx caddy.Context, json string) caddytest.Handler {
	t.Helper()
	return caddytest.LoadInto(t, ctx, "adaptive_concurrency "+json)
}

// one is a limit of one slot.
const one = `{"key": "{http.request.header.Key}", "max_wait": "20ms", "max": 1, "name": "one"}`

// hold has a request hold a slot until it is let go.
func hold(h caddytest.Handler) (letGo func()) {
	running, hold := make(chan bool), make(chan bool)
	w := httptest.NewRecorder()
	go func() {
		_ = h.ServeHTTP(w, caddytest.Request(w, "203.0.113.7:1"), caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
			running <- true
			<-hold
			return nil
		}))
		close(running)
	}()
	<-running
	return func() {
		close(hold)
		<-running
	}
}

// ask sends a request of a key, and returns the status of a refusal and Retry-After.
func ask(h caddytest.Handler, keys ...string) (status int, after string) {
	w := httptest.NewRecorder()
	r := caddytest.Request(w, "203.0.113.7:1")
	r.Header["Key"] = keys
	if err := h.ServeHTTP(w, r, caddytest.Passing); err != nil {
		status = caddytest.StatusOf(err)
	}
	return status, w.Header().Get("Retry-After")
}

// TestRefusal: who gets no slot in time gets an error with status 503 and Retry-After. A key that
// asks for more than twice its share gets 429.
func TestRefusal(t *testing.T) {
	h := load(t, caddytest.Config(t), one)
	letGo := hold(h)
	for range 2 {
		if status, after := ask(h, "a"); status != http.StatusServiceUnavailable || after == "" {
			t.Errorf("status %d, Retry-After %q", status, after)
		}
	}
	if status, _ := ask(h, "a", "b"); status != http.StatusBadRequest {
		t.Errorf("with two keys the status is %d", status)
	}
	letGo()
	if status, _ := ask(h, "a"); status != 0 {
		t.Errorf("status %d with a free slot", status)
	}
	letGo = hold(h)
	defer letGo()
	answers := make(chan int)
	for range 9 {
		go func() {
			status, _ := ask(h, "a")
			answers <- status
		}()
	}
	if status, _ := ask(h, "b"); status != http.StatusServiceUnavailable {
		t.Errorf("another key gets %d", status)
	}
	if status := <-answers; status != http.StatusTooManyRequests {
		t.Errorf("the key that asks for more than its share gets %d", status)
	}
	for range 8 {
		<-answers
	}
}

// TestTooEarly: before the handshake is complete, the client's address may be forged.
func TestTooEarly(t *testing.T) {
	h := load(t, caddytest.Config(t), `{"key": "{http.vars.client_ip}"}`)
	r := caddytest.Request(httptest.NewRecorder(), "203.0.113.7:1")
	r.TLS = new(tls.ConnectionState)
	if err := h.ServeHTTP(httptest.NewRecorder(), r, caddytest.Passing); caddytest.StatusOf(err) != http.StatusTooEarly {
		t.Error(err)
	}
}

// TestHold: the slot is free when the response starts, or with hold response when all of it was sent.
func TestHold(t *testing.T) {
	for hold, want := range map[string]string{"": "0 0", `, "hold": "response"`: "1 0"} {
		ctx := caddytest.Config(t)
		h := load(t, ctx, `{"max": 1`+hold+`}`)
		running := func() float64 { return caddytest.Scrape(t, ctx)["adaptive_running{name=default}"] }
		w := httptest.NewRecorder()
		var streaming float64
		_ = h.ServeHTTP(w, caddytest.Request(w, "203.0.113.7:1"), caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusEarlyHints)
			if running() != 1 {
				t.Error("an informational response frees the slot")
			}
			_, _ = io.WriteString(w, "begins")
			streaming = running()
			return nil
		}))
		if got := fmt.Sprint(streaming, running()); got != want {
			t.Errorf("%s: %s run while the response is sent and in the end, want %s", hold, got, want)
		}
	}
}

// TestFailedConfig: a limit gets the options of the config back that still runs, even if several handlers of the config that
// failed have the limit.
func TestFailedConfig(t *testing.T) {
	prepare := func(low, high int) caddy.App {
		ctx := caddytest.Config(t)
		for range 2 {
			load(t, ctx, fmt.Sprintf(`{"name": "failed", "min": %d, "max": %d}`, low, high))
		}
		module, err := ctx.App("adaptive_concurrency")
		if err != nil {
			t.Fatal(err)
		}
		return module.(caddy.App)
	}
	running, failing := prepare(50, 60), prepare(1, 5)
	for _, step := range []struct {
		name      string
		do        func() error
		low, high int
	}{
		{"the running config starts", running.Start, 50, 60},
		{"the other one starts", failing.Start, 1, 5},
		{"the other one has failed", failing.Stop, 50, 60},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		l, want := adaptive.Running()[0], fmt.Sprintf(`"min":%d,"max":%d`, step.low, step.high)
		if !strings.Contains(string(l.Definition), want) || l.Limit < step.low || l.Limit > step.high {
			t.Errorf("%s: the limit is %d with %s, want %s", step.name, l.Limit, l.Definition, want)
		}
	}
	if err := running.Stop(); err != nil || len(adaptive.Running()) > 0 {
		t.Errorf("%v, and %v in the end", err, adaptive.Running())
	}
}

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
