//go:build deep

// Package floods_test tests that floods let nothing pass, and cost Redis and other clients little.
package floods_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

func TestMain(m *testing.M) { harness.Main(m) }

// swarm is the connections of a flood.
type swarm struct {
	open []wire
	each int // requests at once on each
}

// connect opens the connections of a flood.
func (f *busyTarget) connect(t *testing.T, protocol string, conns, each int) *swarm {
	t.Helper()
	l := &swarm{make([]wire, conns), each}
	t.Cleanup(l.close)
	var all sync.WaitGroup
	var failed atomic.Pointer[error]
	const together = 8
	for first := range together {
		all.Go(func() {
			for i := first; i < conns; i += together {
				w, err := protocols[protocol](f)
				if err != nil {
					failed.Store(&err)
					return
				}
				l.open[i] = w
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		t.Fatalf("%s: %v", protocol, *err)
	}
	return l
}

func (l *swarm) close() {
	for _, w := range l.open {
		if w != nil {
			_ = w.Close()
		}
	}
}

// flood writes all requests at once, with the keys in turn, and returns how often each status came.
func (l *swarm) flood(t *testing.T, path string, keys []string) map[int]int {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	statuses := make(map[int]int)
	next := 0
	for _, w := range l.open {
		some := make([]string, l.each)
		for i := range some {
			some[i] = keys[next%len(keys)]
			next++
		}
		if err := w.write(path, some); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range l.open {
		all.Go(func() {
			got, err := w.read()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			for _, status := range got {
				statuses[status]++
			}
		})
	}
	all.Wait()
	return statuses
}

// keysOf returns names of keys.
func keysOf(name string, n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprint(name, i))
	}
	return keys
}

// flood says how many requests come at once, and how.
type flood struct {
	protocol    string
	conns, each int
}

// floods are those of TestFloodsPassNothing. 4,000 connections of HTTP/3 are too many for two cores.
var floods = []flood{
	{"HTTP/1.1", 200, 1},
	{"HTTP/1.1", 1000, 1},
	{"HTTP/1.1", 4000, 1},
	{"HTTP/2, no TLS", 4, 50},
	{"HTTP/2, no TLS", 16, 250},
	{"HTTP/2", 200, 1},
	{"HTTP/2", 1000, 1},
	{"HTTP/2", 4000, 1},
	{"HTTP/2", 16, 250},
	{"HTTP/3", 200, 1},
	{"HTTP/3", 1000, 1},
	{"HTTP/3", 40, 100},
}

// TestFloodsPassNothing floods each kind of zone in many ways. Most limits are used up, so nothing may pass; new keys
// pass no more than their limit. A Redis that does not run does not answer, so the timeout is the default one only on a
// machine that does nothing else.
func TestFloodsPassNothing(t *testing.T) {
	timeout := 500 * time.Millisecond
	if patient.Idle() {
		timeout = 50 * time.Millisecond
	}
	// With the race detector 4,000 take ten minutes and 8 GB. "make outages" sends them without it.
	most := deep.Racing(1000, 4000)
	floods := slices.DeleteFunc(slices.Clone(floods), func(f flood) bool { return f.conns*f.each > most })
	for _, keys := range []int{1, 100} {
		f := startBusyTarget(t, timeout)
		for _, zone := range f.zones {
			f.use(t, zone, keysOf("used", keys))
		}
		for i, c := range floods {
			l := f.connect(t, c.protocol, c.conns, c.each)
			for _, zone := range f.zones {
				f.press(t, l, zone, keys, fmt.Sprintf("fresh%d-", i))
			}
			l.close()
		}
		t.Logf("errors of the store: %v", f.errors())
		waited := false
		_, samples := f.Scrape()
		for name := range samples {
			waited = waited || strings.HasPrefix(name, "store_queue_seconds_total{")
		}
		if !waited {
			t.Error("no metric says that requests waited in Caddy")
		}
	}
}

// press floods a zone with keys whose limit is used up, and then with new ones.
func (f *busyTarget) press(t *testing.T, l *swarm, zone string, keys int, fresh string) {
	t.Helper()
	for _, names := range [][]string{keysOf("used", keys), keysOf(fresh, keys)} {
		limit, before := busyLimit, 0
		if names[0] == "used0" {
			limit, before = 0, f.countAll(zone, names, 0)
		} else if !boundsFresh(zone) {
			continue
		}
		statuses := l.flood(t, "/"+zone, names)
		if beyond := f.countAll(zone, names, limit) - before; beyond > 0 {
			t.Errorf("%s, %d x %d, %d keys %s...: %d requests passed beyond the limit, answers %v", zone, len(l.open), l.each, keys, names[0], beyond, statuses)
		}
	}
}
