package caddyratelimit_test

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

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// subscriber is an event handler as other people write them: a module that a config names.
type subscriber struct{}

func init() { caddy.RegisterModule(subscriber{}) }

func (subscriber) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "events.handlers.subscriber", New: func() caddy.Module { return new(subscriber) }}
}

func (*subscriber) UnmarshalCaddyfile(d *caddyfile.Dispenser) error { d.Next(); return nil }

func (*subscriber) Handle(_ context.Context, e caddy.Event) error {
	heard.mu.Lock()
	defer heard.mu.Unlock()
	heard.events = append(heard.events, e)
	return nil
}

var _ caddyevents.Handler = (*subscriber)(nil)

// heard are the events of the Caddy that runs.
var heard struct {
	mu     sync.Mutex
	events []caddy.Event
}

// hearings counts the events so far, by name and by zone or store state.
func hearings(t *testing.T) (count map[string]int, last map[string]map[string]any) {
	t.Helper()
	heard.mu.Lock()
	defer heard.mu.Unlock()
	count, last = make(map[string]int), make(map[string]map[string]any)
	for _, e := range heard.events {
		of := e.Data["zone"]
		if of == nil {
			of = e.Data["state"]
		}
		name := fmt.Sprint(e.Name(), " ", of)
		count[name]++
		last[name] = e.Data
		if _, err := json.Marshal(e.CloudEvent()); err != nil {
			t.Errorf("%s cannot be passed on: %v", name, err)
		}
	}
	return count, last
}

// TestEventsOfARunningCaddy: subscribers hear of each key while many clients are refused and
// configs are reloaded. There is one event for each ban, and the ban outlives the reload.
func TestEventsOfARunningCaddy(t *testing.T) {
	const keys, each, clients = 50, 20, 4
	dead, address := redistest.FreePort(t), newSite(t)
	load := func(reload int) {
		t.Helper()
		runAt(t, address, fmt.Sprintf(`{
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
		}`, reload, dead))
	}
	load(0)
	get := func(path string, header ...string) {
		r, _ := http.NewRequest(http.MethodGet, "http://"+address+path, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		if answer, err := http.DefaultClient.Do(r); err == nil { // a reload may cut a request off
			_ = answer.Body.Close()
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
	get("/down") // a goroutine emits its event
	count, last := hearings(t)
	patient.Until(t, "word of the store", func() bool {
		count, last = hearings(t)
		return count["rate_limit_store_state down"] > 0
	})
	if down := last["rate_limit_store_state down"]; down["on_store_error"] != "allow" || down["error"] == "" {
		t.Errorf("the store's state is told of as %v", down)
	}
	if count["rate_limit_exceeded bans"] != keys || count["rate_limit_banned bans"] != keys || count["rate_limit_rejected blocks"] != 1 {
		t.Errorf("heard %v, want %d keys exceeded and banned, and one request rejected", count, keys)
	}
	ban := last["rate_limit_banned bans"]
	until, _ := ban["until"].(time.Time)
	if ban["wait"] != 2*time.Hour || ban["key"] == "" || ban["client_ip"] != "127.0.0.1" || time.Until(until) > 2*time.Hour || time.Until(until) < time.Hour {
		t.Errorf("a ban is told of as %v", ban)
	}

	var reloading sync.WaitGroup
	reloading.Go(flood)
	for i := range 3 {
		load(i + 1)
	}
	reloading.Wait()
	flood()
	count, _ = hearings(t)
	if count["rate_limit_banned bans"] != keys {
		t.Errorf("%d bans are told of, want %d", count["rate_limit_banned bans"], keys)
	}
	// A new config has not emitted anything about a key yet.
	if n := count["rate_limit_exceeded bans"]; n > keys*4 {
		t.Errorf("%d keys exceeded, of %d under 4 configs", n, keys)
	}
}
