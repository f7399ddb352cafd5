package caddyratelimit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/caddyserver/caddy/v2"

	limits "github.com/seed-161337e5/caddyratelimit"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// made is what configs have made: each is nil once nothing refers to it.
var made struct {
	sync.Mutex
	apps     []weak.Pointer[limits.App]
	handlers []weak.Pointer[limits.Handler]
	zones    []weak.Pointer[zone.Zone]
	refs     []weak.Pointer[pool.Ref]
}

// registrar is an app that notes what a config has made, and may fail.
type registrar struct {
	Fails string `json:"fails"` // "provision", "start" or ""
}

func init() { caddy.RegisterModule(new(registrar)) }

// CaddyModule implements [caddy.Module].
func (*registrar) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "registrar_test", New: func() caddy.Module { return new(registrar) }}
}

var errMeant = errors.New("it was meant to fail")

// Provision implements [caddy.Provisioner].
func (a *registrar) Provision(ctx caddy.Context) error {
	if _, err := ctx.App("http"); err != nil { // which loads the handlers
		return err
	}
	module, err := ctx.App("rate_limit")
	if err != nil {
		return err
	}
	app := module.(*limits.App)
	made.Lock()
	defer made.Unlock()
	made.apps = append(made.apps, weak.Make(app))
	for _, h := range app.Handlers() {
		made.handlers = append(made.handlers, weak.Make(h.Module.(*limits.Handler)))
		made.refs = append(made.refs, weak.Make(h.Store), weak.Make(h.Local))
		for _, z := range h.Zones {
			made.zones = append(made.zones, weak.Make(z))
		}
	}
	if a.Fails == "provision" {
		return errMeant
	}
	return nil
}

// Start implements [caddy.App].
func (a *registrar) Start() error {
	if a.Fails == "start" {
		return errMeant
	}
	return nil
}

// Stop implements [caddy.App].
func (*registrar) Stop() error { return nil }

// alive returns how many of these still are.
func alive[T any](all []weak.Pointer[T]) (n int) {
	for _, p := range all {
		if p.Value() != nil {
			n++
		}
	}
	return n
}

// left says what is left of the configs.
func left() string {
	runtime.GC()
	made.Lock()
	defer made.Unlock()
	return fmt.Sprintf("%d apps, %d handlers, %d zones, %d stores' references", alive(made.apps), alive(made.handlers), alive(made.zones), alive(made.refs))
}

const nothingLeft = "0 apps, 0 handlers, 0 zones, 0 stores' references"

// mostOptions are zones with most options, for one site.
const mostOptions = `
	route /shape {
		rate_limit {
			zone reads {
				match method GET
				exempt remote_ip 192.0.2.0/24
				block header X-Bad *
				key "{client_ip} {header.X-User}"
				ipv4_prefix 24
				ipv6_prefix 56
				missing_key share
				plan {header.X-Plan} {
					gold 1000/1m
					free 900/1m
					default free
				}
				overrides
				ban 1m after 500 refusals in 1m
				on_store_error local
			}
			zone slots {
				algorithm concurrency 100
				lease 5s
			}
			zone turns {
				algorithm leaky_bucket 1000/1s
				mode queue
				burst 1000
				max_wait 1s
			}
			zone refunds {
				algorithm token_bucket 1000/1s
				charge {
					status 5xx
				}
			}
			zone costs {
				algorithm sliding_window_counter 100000/1m
				charge {
					header X-Cost
				}
				enforce 50
			}
			zone shown {
				algorithm fixed_window 100000/day
				timezone Europe/Paris
				headers off
				enforce 0
			}
			on_limit problem
			jitter 0.2
			log all
			log_key
			headers draft-10 x-ratelimit
			instances 2
		}
		rate_limit {
			zone refunds {
				algorithm token_bucket 1000/1s
				charge {
					status 5xx
				}
			}
			zone json {
				key "{client_ip} {http.rate_limit.json.model}"
				algorithm token_bucket 100000/1m
				cost {http.rate_limit.json.max_tokens} 1
				charge {
					json usage.total_tokens
				}
			}
		}
		respond ok
	}`

const adaptiveLimits = `
	route /upstream {
		adaptive_concurrency upstream {
			key {client_ip}
		}
		respond ok
	}
	route /same {
		adaptive_concurrency upstream {
			key {client_ip}
		}
		respond ok
	}`

// TestNothingOutlivesConfig: nothing that a config has made is left when the config is gone, however it ends.
func TestNothingOutlivesConfig(t *testing.T) {
	redisServer := redistest.Start(t)
	redis := "store redis {\naddress " + redisServer.Addr() + "\ntimeout 10s\n}\n"
	one := func(path, store string) string {
		return "route /" + path + " {\nrate_limit {\n" + store + "zone " + path + " {\nkey {client_ip}\nrate 1000000/1h\noverrides\n}\n}\nrespond ok\n}\n"
	}
	inRedis := strings.ReplaceAll(mostOptions, "rate_limit {\n", "rate_limit {\n"+redis)
	for _, c := range []struct{ name, site string }{
		{"memory", one("memory", "store memory {\nmax_keys 50000\n}\nsweep_interval 10s\n")},
		{"Redis", one("redis", redis)},
		{"both", one("memory", "") + one("redis", redis)},
		{"adaptive", adaptiveLimits},
		{"most options", mostOptions + adaptiveLimits},
		{"most options, Redis", inRedis},
	} {
		t.Run(c.name, func(t *testing.T) {
			address := caddytest.FreeAddress(t)
			load := func(fails string) {
				t.Helper()
				err := loadWith(t, address, c.site, fails)
				if failed := err != nil && strings.Contains(err.Error(), errMeant.Error()); failed != (fails != "") || err != nil && !failed {
					t.Fatalf("fails %q: %v", fails, err)
				}
			}
			load("")
			one := left()
			stop := sendAlong(t, address, c.site)
			for range deep.Steps(4, 100) {
				load("provision")
				load("start")
				load("")
			}
			stop()
			patient.UntilEqual(t, "left while the last config runs", left, one)
			if err := caddy.Stop(); err != nil {
				t.Fatal(err)
			}
			patient.UntilEqual(t, "left of the configs", left, nothingLeft)
		})
	}
}

// unregistered is for a config without a registrar.
const unregistered = "unregistered"

// loadWith loads a site, next to a registrar that fails on demand.
func loadWith(t *testing.T, address, site, fails string) error {
	t.Helper()
	config, _, err := caddytest.Adapt("{\nadmin off\npersist_config off\nauto_https off\nmetrics\nlog {\noutput discard\n}\n}\nhttp://" + address + " {\n" + site + "\n}\n")
	if err != nil {
		t.Fatal(err)
	}
	var parsed map[string]any
	if err := json.Unmarshal(config, &parsed); err != nil {
		t.Fatal(err)
	}
	apps := parsed["apps"].(map[string]any)
	if fails != unregistered {
		apps["registrar_test"] = map[string]any{"fails": fails}
	}
	apps["tls"] = map[string]any{"disable_storage_clean": true, "disable_storage_check": true}
	if config, err = json.Marshal(parsed); err != nil {
		t.Fatal(err)
	}
	return caddy.Load(config, true)
}

// sendAlong sends requests to all routes of a site until stop is called.
func sendAlong(t *testing.T, address, site string) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	var clients sync.WaitGroup
	for _, line := range strings.Split(site, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "route" {
			continue
		}
		client := &http.Client{Transport: new(http.Transport)}
		clients.Go(func() {
			defer client.CloseIdleConnections()
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				r, _ := http.NewRequest(http.MethodGet, "http://"+address+fields[1], nil)
				r.Header.Set("X-User", fmt.Sprint("u", n%50))
				if response, err := client.Do(r); err == nil {
					_, _ = io.Copy(io.Discard, response.Body)
					_ = response.Body.Close()
				}
			}
		})
	}
	return sync.OnceFunc(func() { close(done); clients.Wait() })
}
