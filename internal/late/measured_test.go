package late_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
)

// measuredZone is the JSON of a zone whose requests cost what their responses take.
func measuredZone(options, measured string) string {
	return `{"key": "{http.request.header.Client}", "algorithm": "fixed_window", "align": "first_request", "max_events": 100000, "window": "1h", ` +
		options + `"cost_measured": {` + measured + `}}`
}

// begins sends a request of a key in the background, whose client leaves after some time, or stays. The channel closes
// when the request is over.
func begins(h caddytest.Handler, key string, leaves time.Duration, behind caddyhttp.HandlerFunc) (over chan struct{}) {
	over = make(chan struct{})
	go func() {
		defer close(over)
		defer func() { _ = recover() }() // as the server does
		w := httptest.NewRecorder()
		r := caddytest.Request(w, "203.0.113.7:1")
		r.Header.Set("Client", key)
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		if leaves > 0 {
			defer time.AfterFunc(leaves, cancel).Stop()
		}
		_ = h.ServeHTTP(w, r.WithContext(ctx), behind)
	}()
	return over
}

// TestMeasuredCosts: a request costs what its response takes, however it ends. Without a response, the request costs at
// least what was booked.
func TestMeasuredCosts(t *testing.T) {
	takes := func(d time.Duration, then ...caddyhttp.HandlerFunc) caddyhttp.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) error {
			time.Sleep(d)
			for _, f := range then {
				if err := f(w, r); err != nil {
					return err
				}
			}
			return nil
		}
	}
	const ms = time.Millisecond
	writes := func(w http.ResponseWriter, _ *http.Request) error {
		_, err := io.WriteString(w, "0123456789")
		return err
	}
	copies := func(w http.ResponseWriter, _ *http.Request) error {
		_, err := io.Copy(w, struct{ io.Reader }{strings.NewReader(strings.Repeat("x", 9000))})
		return err
	}
	panics := func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) }
	waits := func(_ http.ResponseWriter, r *http.Request) error { return wait499(r) }
	for _, c := range []struct {
		name                      string
		upstream, response, bytes int64 // what the request costs in each zone
		leaves                    time.Duration
		behind                    caddyhttp.HandlerFunc
	}{
		{"a page", 30, 50, 10, 0, takes(30*ms, writes, takes(20*ms))},
		{"rounded", 30, 31, 10, 0, takes(30*ms+400*time.Microsecond, writes, takes(200*time.Microsecond))},
		{"at once", 1, 1, 1, 0, takes(0)},
		{"without a body", 7, 7, 1, 0, takes(7 * ms)},
		{"copied", 5, 5, 9000, 0, takes(5*ms, copies)},
		{"an error", 40, 40, 1, 0, takes(40*ms, func(http.ResponseWriter, *http.Request) error { return caddyhttp.Error(502, errors.New("no upstream")) })},
		{"a panic", 500, 500, 40, 0, takes(40*ms, panics)},
		{"a late panic", 40, 60, 10, 0, takes(40*ms, writes, takes(20*ms, panics))},
		{"gone before", 500, 500, 40, 100 * ms, waits},
		{"gone before, and late", 2000, 2000, 40, 2000 * ms, waits},
		{"gone later", 30, 100, 10, 100 * ms, takes(30*ms, writes, waits)},
		{"long", 20_000, 20_000, 10, 0, takes(20*time.Second, writes)},
		{"too long", 60_000, 60_000, 10, 0, takes(2*time.Minute, writes)},
	} {
		synctest.Test(t, func(t *testing.T) {
			kept := caddytest.KeepMemory(t, memorystore.Options{})
			h := caddytest.Load(t, `{`+kept.Option()+`"rate_limits": {"upstream": `+measuredZone("", `"of": "upstream_time", "first": 500, "up_to": 60000`)+
				`, "response": `+measuredZone("", `"of": "response_time", "first": 500, "up_to": 60000`)+`, "bytes": `+measuredZone("", `"of": "bytes", "first": 40`)+`}}`)
			<-begins(h, "k", c.leaves, c.behind)
			for zone, want := range map[string]int64{"upstream": c.upstream, "response": c.response, "bytes": c.bytes} {
				if got := kept.Used(t, zone, "k"); got != want {
					t.Errorf("%s: %d are charged in the zone %s, want %d", c.name, got, zone, want)
				}
			}
		})
	}
}

// TestMeasuredBookings: what such requests have cost is booked, and never more than the limit allows. While a response
// takes longer, the request pays every five seconds, as soon as it is known that the response counts. None of it changes when
// the config is loaded again meanwhile.
func TestMeasuredBookings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := caddytest.KeepMemory(t, memorystore.Options{})
		config := `{` + kept.Option() + `"rate_limits": {"all": ` + measuredZone("", `"of": "response_time"`) +
			`, "failures": ` + measuredZone(`"charge_on_response": {"status_code": [5]}, `, `"of": "response_time"`) +
			`, "tried": ` + measuredZone(`"dry_run": true, `, `"of": "response_time"`) + `}}`
		first := caddytest.Load(t, config)
		used := func(want ...int64) {
			t.Helper()
			synctest.Wait()
			for i, zone := range []string{"all", "failures", "tried"} {
				if got := kept.Used(t, zone, "k"); got != want[i] {
					t.Errorf("%d are charged in the zone %s, want %d", got, zone, want[i])
				}
			}
		}
		takes := func(d time.Duration) caddyhttp.HandlerFunc {
			return func(http.ResponseWriter, *http.Request) error { time.Sleep(d); return nil }
		}
		long := begins(first, "k", 0, takes(time.Hour/2))
		used(1, 1, 1)
		time.Sleep(12 * time.Second)
		used(10_000, 1, 10_000)
		second := caddytest.Load(t, config)
		caddytest.CleanUp(t, first)
		time.Sleep(5 * time.Second)
		used(15_000, 1, 15_000)
		time.Sleep(85 * time.Second)
		used(100_000, 1, 100_000)
		<-long
		used(100_000, 0, 100_000) // which is all that shows of a debt
		time.Sleep(time.Hour)
		again := begins(second, "k", 0, takes(10*time.Millisecond))
		used(100_000, 1, 100_000) // the whole limit, and no more
		<-again
		used(10, 0, 10)
	})
}

// TestMeasuredFailures: where only failures count, a long response pays from when it is known to be one, and also if its client
// leaves before.
func TestMeasuredFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := caddytest.KeepMemory(t, memorystore.Options{})
		h := caddytest.Load(t, `{`+kept.Option()+`"rate_limits": {"failures": `+measuredZone(`"charge_on_response": {"status_code": [5]}, `, `"of": "response_time"`)+`}}`)
		used := func(key string, want int64) {
			t.Helper()
			synctest.Wait()
			if got := kept.Used(t, "failures", key); got != want {
				t.Errorf("%d are charged to %s, want %d", got, key, want)
			}
		}
		fails := begins(h, "fails", 0, func(w http.ResponseWriter, _ *http.Request) error {
			time.Sleep(7 * time.Second)
			w.WriteHeader(http.StatusBadGateway)
			time.Sleep(5 * time.Second)
			return nil
		})
		left := begins(h, "left", 8*time.Second, func(_ http.ResponseWriter, r *http.Request) error { return wait499(r) })
		time.Sleep(6 * time.Second)
		used("fails", 1)
		used("left", 1)
		time.Sleep(5 * time.Second)
		used("fails", 10_000)
		<-fails
		used("fails", 12_000)
		<-left
		used("left", 8_000)
	})
}

// TestMeasuredDebt: a long response that does not count leaves what other requests of the key have used, and no more, although a bucket
// bounds its debt.
func TestMeasuredDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := caddytest.KeepMemory(t, memorystore.Options{})
		h := caddytest.Load(t, `{`+kept.Option()+`"rate_limits": {"failures": {"key": "{http.request.header.Client}", "algorithm": "token_bucket", "max_events": 10, "window": "24h",
			"charge_on_response": {"status_code": [5]}, "cost_measured": {"of": "response_time", "first": 1}}}}`)
		for range 4 {
			<-begins(h, "k", 0, func(w http.ResponseWriter, _ *http.Request) error { w.WriteHeader(http.StatusBadGateway); return nil })
		}
		<-begins(h, "k", 0, func(http.ResponseWriter, *http.Request) error { time.Sleep(time.Minute); return nil })
		synctest.Wait()
		if got := kept.Used(t, "failures", "k"); got != 4 {
			t.Errorf("%d are charged, want the 4 of before", got)
		}
	})
}
