package report_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// subscriber is an event handler in a module that configs name.
type subscriber struct{}

func init() { caddy.RegisterModule(subscriber{}) }

func (subscriber) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "events.handlers.subscriber", New: func() caddy.Module { return new(subscriber) }}
}

func (*subscriber) UnmarshalCaddyfile(d *caddyfile.Dispenser) error { d.Next(); return nil }

func (*subscriber) Handle(_ context.Context, e caddy.Event) error {
	received.mu.Lock()
	defer received.mu.Unlock()
	received.events = append(received.events, e)
	return nil
}

var _ caddyevents.Handler = (*subscriber)(nil)

// received are the events of the Caddy that runs.
var received struct {
	mu     sync.Mutex
	events []caddy.Event
}

// events counts the events so far by name and zone or store state, and returns the data of the last
// one.
func events(t *testing.T) (count map[string]int, last map[string]map[string]any) {
	t.Helper()
	received.mu.Lock()
	defer received.mu.Unlock()
	count, last = make(map[string]int), make(map[string]map[string]any)
	for _, e := range received.events {
		about := e.Data["zone"]
		if about == nil {
			about = e.Data["state"]
		}
		name := fmt.Sprint(e.Name(), " ", about)
		count[name]++
		last[name] = e.Data
		if _, err := json.Marshal(e.CloudEvent()); err != nil {
			t.Errorf("%s has no JSON: %v", name, err)
		}
	}
	return count, last
}

// TestEventsOfARunningCaddy: subscribers receive events while many clients are refused and configs are
// reloaded. A ban is one event, because its state outlives the reload.
func TestEventsOfARunningCaddy(t *testing.T) {
	const keys, each, clients = 50, 20, 4
	deadPort, address := redistest.FreePort(t), caddytest.FreeAddress(t)
	load := func(reload int) {
		t.Helper()
		caddytest.RunConfig(t, address, fmt.Sprintf(`{
			events {
				on rate_limit_exceeded    subscriber
				on rate_limit_rejected    subscriber
				on rate_limit_banned      subscriber
				on rate_limit_store_state subscriber
			}
		}
		:80 {
			header Reload %d
			rate_limit /down {
				zone down {
					events 1
					window 1h
				}
				store redis {
					address 127.0.0.1:%d
				}
			}
			rate_limit {
				zone bans {
					key    {header.X-Key}
					events 1
					window 1h
					ban    2h after 5 refusals in 1h
				}
				zone blocks {
					match  path /blocked
					events 1
					window 1h
					block  header X-Bad *
				}
				log     off
				log_key
			}
		}`, reload, deadPort))
	}
	load(0)
	get := func(path string, header ...string) {
		r, _ := http.NewRequest(http.MethodGet, "http://"+address+path, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		if response, err := http.DefaultClient.Do(r); err == nil { // a reload may cut a response off
			_ = response.Body.Close()
		}
	}
	flood := func() {
		var all sync.WaitGroup
		for c := range clients {
			all.Go(func() {
				for i := c; i < keys*each; i += clients {
					get("/", "X-Key", strconv.Itoa(i%keys))
				}
			})
		}
		all.Wait()
	}
	flood()
	get("/blocked", "X-Bad", "yes", "X-Key", "blocked")
	get("/down") // the event comes from a goroutine
	count, last := events(t)
	patient.Until(t, "the event of the store", func() bool {
		count, last = events(t)
		return count["rate_limit_store_state down"] > 0
	})
	if down := last["rate_limit_store_state down"]; down["on_store_error"] != "allow" || down["error"] == "" {
		t.Errorf("the event of the store has %v", down)
	}
	if count["rate_limit_exceeded bans"] != keys || count["rate_limit_banned bans"] != keys || count["rate_limit_rejected blocks"] != 1 {
		t.Errorf("the events are %v, want %d keys exceeded and banned, and one request rejected", count, keys)
	}
	ban := last["rate_limit_banned bans"]
	until, _ := ban["until"].(time.Time)
	if ban["wait"] != 2*time.Hour || ban["key"] == "" || ban["client_ip"] != "127.0.0.1" || time.Until(until) > 2*time.Hour || time.Until(until) < time.Hour {
		t.Errorf("the event of a ban has %v", ban)
	}

	var reloading sync.WaitGroup
	reloading.Go(flood)
	for i := range 3 {
		load(i + 1)
	}
	reloading.Wait()
	flood()
	count, _ = events(t)
	if count["rate_limit_banned bans"] != keys {
		t.Errorf("%d events of bans, want %d", count["rate_limit_banned bans"], keys)
	}
	// A new config has reported no keys yet.
	if n := count["rate_limit_exceeded bans"]; n > keys*4 {
		t.Errorf("%d events for %d keys and 4 configs", n, keys)
	}
}
