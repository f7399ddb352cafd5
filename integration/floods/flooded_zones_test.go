//go:build deep

package floods_test

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// busyLimit is how many requests a key has in each zone of a flood, for longer than the flood takes.
const busyLimit = 5

// busyZones are the kinds of zones that are flooded: each algorithm, strict and lent, and each option.
var busyZones = map[string]string{
	"log":          "algorithm sliding_window_log 5/10h",
	"log-lent":     "algorithm sliding_window_log 5/10h\nlend 100ms",
	"counter":      "algorithm sliding_window_counter 5/10h",
	"counter-lent": "algorithm sliding_window_counter 5/10h\nlend 100ms",
	"bucket":       "algorithm token_bucket 5/10h",
	"bucket-lent":  "algorithm token_bucket 5/10h\nlend 100ms",
	"leaky":        "algorithm leaky_bucket 5/10h",
	"leaky-lent":   "algorithm leaky_bucket 5/10h\nlend 100ms",
	"fixed":        "algorithm fixed_window 5/10h\nalign first_request",
	"fixed-lent":   "algorithm fixed_window 5/10h\nalign first_request\nlend 100ms",
	"concurrency":  "algorithm concurrency\nevents 5\nlease 1h",
	"overrides":    "algorithm sliding_window_counter 5/10h\noverrides",
	"ban":          "algorithm sliding_window_counter 5/10h\nban 1s after 1000000 refusals in 1h",
	"queue":        "algorithm leaky_bucket 5/10h\nmode queue\nmax_wait 100ms",
	"max_wait":     "algorithm sliding_window_counter 5/10h\nmax_wait 100ms",
	"refund":       "algorithm token_bucket 5/10h\ncharge {\nstatus 200\n}",
	"late":         "algorithm token_bucket 5/10h\ncharge {\nheader X-Cost\n}",
	"late-lent":    "algorithm token_bucket 5/10h\ncharge {\nheader X-Cost\n}\nlend 100ms",
}

// boundsFresh reports whether a key that is new can pass no more than its limit in one burst. Slots come back, and
// a late cost is known when others have passed.
func boundsFresh(zone string) bool {
	return !strings.HasPrefix(zone, "concurrency") && !strings.HasPrefix(zone, "late")
}

// busyTarget is a Caddy with a zone of each kind, a healthy Redis, and an upstream that counts.
type busyTarget struct {
	*harness.Server
	redis  *redistest.Server
	zones  []string
	secure string // the address of the site with TLS
	trust  *tls.Config

	mu     sync.Mutex
	passed map[string]int // by zone and key
}

func startBusyTarget(t *testing.T, timeout time.Duration) *busyTarget {
	f := &busyTarget{redis: redistest.Start(t), zones: slices.Sorted(maps.Keys(busyZones)), passed: make(map[string]int)}
	gate := make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.passed[r.URL.Path[1:]+" "+r.Header.Get("X-Key")]++
		f.mu.Unlock()
		if r.Header.Get("X-Hold") != "" {
			<-gate
		}
		w.Header().Set("X-Cost", "1")
	}))
	t.Cleanup(func() { close(gate); upstream.Close() })
	var site strings.Builder
	for _, zone := range f.zones {
		fmt.Fprintf(&site, `
			handle /%s {
				rate_limit {
					zone %[1]s {
						key {header.X-Key}
						%s
					}
					store redis {
						address %s
						timeout %s
					}
					on_store_error allow
				}
				reverse_proxy %s
			}`, zone, busyZones[zone], f.redis.Addr(), timeout, upstream.Listener.Addr())
	}
	var versions []harness.Version
	f.Server, versions = harness.StartEveryVersion(t, "servers {\nprotocols h1 h2 h2c h3\n}", site.String())
	f.secure, f.trust = secureAddress(versions)
	// Redis is healthy: it runs when it has something to do, if the system lets a test ask for that.
	_ = exec.Command("renice", "-n", "-10", "-p", strconv.Itoa(f.redis.Pid())).Run()
	return f
}

// count returns how many requests of a zone and a key have passed.
func (f *busyTarget) count(zone, key string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.passed[zone+" "+key]
}

// countAll returns the same of several keys together, but of each only what is beyond a limit.
func (f *busyTarget) countAll(zone string, keys []string, limit int) (n int) {
	for _, key := range keys {
		n += max(0, f.count(zone, key)-limit)
	}
	return n
}

// use uses up the limit of each key of a zone.
func (f *busyTarget) use(t *testing.T, zone string, keys []string) {
	t.Helper()
	client, holder := harness.NewClient(t, ""), harness.NewClient(t, "")
	holder.Timeout = 0 // slots are held until the end
	for _, key := range keys {
		for range busyLimit {
			if !strings.HasPrefix(zone, "concurrency") {
				_, _ = harness.Send(client, f.URL("/"+zone), "X-Key", key)
				continue
			}
			before := f.count(zone, key)
			go func() { _, _ = harness.Send(holder, f.URL("/"+zone), "X-Key", key, "X-Hold", "1") }()
			patient.Until(t, "a slot to be taken", func() bool { return f.count(zone, key) > before })
		}
		patient.Until(t, "a refusal", func() bool {
			a, err := harness.Send(client, f.URL("/"+zone), "X-Key", key)
			return err == nil && a.Status == http.StatusTooManyRequests
		})
	}
}

// errors returns how many requests met an error of the store, by its kind.
func (f *busyTarget) errors() map[string]int {
	kinds := make(map[string]int)
	_, samples := f.Scrape()
	for name, n := range samples {
		if strings.HasPrefix(name, "store_errors_total{") {
			kinds[name[strings.Index(name, `kind="`)+6:strings.Index(name, `",store`)]] += int(n)
		}
	}
	return kinds
}
