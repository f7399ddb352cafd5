package caddyratelimit_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	limits "github.com/seed-161337e5/caddyratelimit"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// arrival is a handler that notes that a request has arrived.
type arrival struct {
	Name string `json:"name"`
}

func init() { caddy.RegisterModule(new(arrival)) }

// arrivals has a channel for each name.
var arrivals = make(map[string]chan struct{})

// CaddyModule implements [caddy.Module].
func (*arrival) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.arrival_test", New: func() caddy.Module { return new(arrival) }}
}

// ServeHTTP implements [caddyhttp.MiddlewareHandler].
func (a *arrival) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	arrivals[a.Name] <- struct{}{}
	return next.ServeHTTP(w, r)
}

// byHand is a config whose apps a test starts itself.
type byHand struct {
	address    string
	http, rate caddy.App
}

var provisioning sync.Mutex

// provision provisions a config with one zone of 2 requests. The name is that of its arrivals.
func provision(t *testing.T, name, zone, store string) *byHand {
	t.Helper()
	provisioning.Lock() // Caddy's app of certificates has variables of the process
	defer provisioning.Unlock()
	c := &byHand{address: fmt.Sprintf("127.0.0.1:%d", redistest.FreePort(t))}
	config := fmt.Sprintf(`{"listen": [%q], "automatic_https": {"disable": true}, "routes": [{"handle": [
		{"handler": "arrival_test", "name": %q},
		{"handler": "rate_limit", %s, "rate_limits": {%q: {"max_events": 2, "window": "1h"}}},
		{"handler": "static_response", "body": "ok"}]}]}`, c.address, name, store, zone)
	ctx, err := caddy.ProvisionContext(&caddy.Config{
		Admin:   &caddy.AdminConfig{Disabled: true},
		Logging: &caddy.Logging{Logs: map[string]*caddy.CustomLog{caddy.DefaultLoggerName: {BaseLog: caddy.BaseLog{WriterRaw: []byte(`{"output": "discard"}`)}}}},
		AppsRaw: caddy.ModuleMap{"http": []byte(`{"servers": {"s": ` + config + `}}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, app := range map[string]*caddy.App{"http": &c.http, "rate_limit": &c.rate} {
		module, err := ctx.App(name)
		if err != nil {
			t.Fatal(err)
		}
		*app = module.(caddy.App)
	}
	t.Cleanup(func() {
		for _, stop := range []func() error{c.http.Stop, c.rate.Stop, c.rate.(*limits.App).Handlers()[0].Module.(caddytest.Handler).Cleanup} {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
	})
	return c
}

// get returns the status of a request to a config, and whether it says what is left of a limit.
func (c *byHand) get(t *testing.T) string {
	r, err := http.Get("http://" + c.address + "/")
	if err != nil {
		t.Error(err)
		return ""
	}
	defer func() { _ = r.Body.Close() }()
	_, _ = io.Copy(io.Discard, r.Body)
	if r.Header.Get("RateLimit") == "" {
		return fmt.Sprint(r.StatusCode, " undecided")
	}
	return fmt.Sprint(r.StatusCode)
}

// TestBeforeFirstAnswer: whatever Caddy starts first, and whether it is a start or a reload, a request is decided as it is once
// the config runs.
func TestBeforeFirstAnswer(t *testing.T) {
	right := redistest.Start(t, redistest.WithPassword("right"))
	faults := []string{"fine", "late", "frozen", "dead", "wrong password"}
	for _, fault := range faults {
		for _, policy := range []string{"allow", "deny", "local"} {
			for _, reload := range []bool{false, true} {
				if reload && (fault == "dead" || fault == "wrong password") {
					continue // as without a reload
				}
				for _, order := range []string{"http first", "rate_limit first"} {
					name := fmt.Sprintf("%s, %s, reload %v, %s", fault, policy, reload, order)
					arrivals[name], arrivals[name+" before"] = make(chan struct{}, 1), make(chan struct{}, 2)
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						testFirstAnswer(t, right, name, fault, policy, reload, order == "http first")
					})
				}
			}
		}
	}
}

func testFirstAnswer(t *testing.T, redis *redistest.Server, name, fault, policy string, reload, httpFirst bool) {
	proxy := faultproxy.Start(t, redis.Addr())
	password := "right"
	timeout := "2s"
	if fault == "frozen" && !reload {
		timeout = "50ms"
	}
	store := func(password string) string {
		return fmt.Sprintf(`"on_store_error": %q, "instances": 1, "store": {"backend": "redis", "address": [%q], "password": %q, "key_prefix": %q, "timeout": %q}`,
			policy, proxy.Addr(), password, name+":", timeout)
	}
	if reload { // the client has used up its limit
		before := provision(t, name+" before", name, store(password))
		for _, start := range []func() error{before.rate.Start, before.http.Start} {
			if err := start(); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if got := before.get(t); got != "200" {
				t.Fatalf("before: %s", got)
			}
		}
	}
	thaw := func() { proxy.Inject(func(string) faultproxy.Fault { return faultproxy.None }) }
	switch fault {
	case "frozen", "late":
		proxy.Inject(func(string) faultproxy.Fault { return faultproxy.SwallowCommand })
	case "dead":
		proxy.Inject(func(string) faultproxy.Fault { return faultproxy.CutBefore })
	case "wrong password":
		password = "wrong"
	}
	c := provision(t, name, name, store(password))
	first := make(chan string, 1)
	if httpFirst {
		if err := c.http.Start(); err != nil {
			t.Fatal(err)
		}
		go func() { first <- c.get(t) }()
		<-arrivals[name]
		if fault == "late" {
			thaw()
		}
	}
	if err := c.rate.Start(); err != nil {
		t.Fatalf("starting: %v", err)
	}
	if fault == "late" {
		thaw()
	}
	if !httpFirst {
		if err := c.http.Start(); err != nil {
			t.Fatal(err)
		}
		first <- c.get(t)
	}
	var want []string
	switch {
	case policy == "deny" && fault != "fine" && fault != "late":
		want = []string{"503 undecided"}
	case fault == "fine":
		want = []string{"200"}
		if reload {
			want = []string{"429"}
		}
	case policy == "local":
		want = []string{"200"}
	default:
		want = []string{"200 undecided"}
	}
	if fault == "late" { // what the config says for a Redis that may or may not answer yet
		want = append(want, "200", "429", map[string]string{"deny": "503 undecided"}[policy])
	}
	if got := <-first; !strings.Contains(" "+strings.Join(want, ";")+";", got+";") {
		t.Errorf("the first request got %s, want %s", got, strings.Join(want, " or "))
	}
}
