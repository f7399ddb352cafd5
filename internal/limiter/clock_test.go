package limiter_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/limit"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// logTime is a clock on the time of a log. It shows the same time until it is moved.
type logTime struct {
	mu     sync.Mutex
	now    time.Duration
	timers []*logTimer
	set    chan struct{} // receives a value whenever a timer is set
}

type logTimer struct {
	clock *logTime
	at    time.Duration
	call  func()
}

func (c *logTime) Now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *logTime) AfterFunc(d time.Duration, f func()) clock.Timer {
	t := &logTimer{clock: c, call: f}
	t.Reset(d)
	return t
}

func (t *logTimer) Reset(d time.Duration) (active bool) {
	active = t.Stop()
	t.clock.mu.Lock()
	t.at = t.clock.now + d
	t.clock.timers = append(t.clock.timers, t)
	t.clock.mu.Unlock()
	t.clock.set <- struct{}{}
	return active
}

func (t *logTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	n := len(t.clock.timers)
	t.clock.timers = slices.DeleteFunc(t.clock.timers, func(other *logTimer) bool { return other == t })
	return len(t.clock.timers) < n
}

// move sets the clock forward, and calls the timers that are due.
func (c *logTime) move(d time.Duration) {
	c.mu.Lock()
	c.now += d
	var due []*logTimer
	c.timers = slices.DeleteFunc(c.timers, func(t *logTimer) bool {
		if t.at <= c.now {
			due = append(due, t)
		}
		return t.at <= c.now
	})
	c.mu.Unlock()
	for _, t := range due {
		go t.call()
	}
}

// logStore is a memory store on the log's time.
type logStore struct{ clock *logTime }

func (logStore) Identity() (string, error) { return "log", nil }

func (b logStore) Open() (store.Store, error) {
	return memorystore.New(memorystore.Options{Now: func() int64 { return b.clock.Now().Microseconds() }})
}

// newLimiter makes a Limiter of one zone on the log's time.
func newLimiter(t *testing.T, c *logTime, l limit.Limit) *limiter.Limiter {
	t.Helper()
	ref, err := pool.AcquireOn(c, logStore{c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ref.Release(); err != nil {
			t.Error(err)
		}
	})
	template, err := key.New("{http.request.header.X-Key}", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zone.New(zone.Spec{Name: "z", Template: template, Limit: l, Cost: limit.Amount{Number: 1}, MissingKey: zone.MissingShare},
		&stats.Counters{Keys: topk.New(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	return limiter.New(limiter.Config{Zones: []*zone.Zone{z}, Store: ref, Measure: true, Logger: zap.NewNop(), Clock: c})
}

// decide decides a request as it may come from a log, without a response.
func decide(l *limiter.Limiter, client string) (o outcome.Outcome, refused bool, left int64) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Key", client)
	v := l.Decide(caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, nil))
	defer v.Release()
	return v.Outcome, v.Refused, v.Decisions[0].Remaining
}

// TestLogTime: a limiter and its store run by the clock that they are given, so that a day of requests
// takes no time.
func TestLogTime(t *testing.T) {
	c := &logTime{set: make(chan struct{}, 100)}
	fixed := limit.Limit{MaxEvents: &limit.Amount{Number: 2}, Window: limit.Window{Duration: caddy.Duration(time.Hour)}, Algorithm: "fixed_window"}
	l := newLimiter(t, c, fixed)
	for hour := range 24 {
		for i, want := range []bool{false, false, true} {
			if _, refused, _ := decide(l, "a"); refused != want {
				t.Fatalf("hour %d, request %d: refused is %v, want %v", hour, i+1, refused, want)
			}
		}
		c.move(time.Hour)
	}
}

// TestQueueOnLogTime: a request waits in a queue until its turn has come on the clock.
func TestQueueOnLogTime(t *testing.T) {
	c := &logTime{set: make(chan struct{}, 100)}
	l := newLimiter(t, c, limit.Limit{
		MaxEvents: &limit.Amount{Number: 1}, Window: limit.Window{Duration: caddy.Duration(time.Hour)},
		Algorithm: "leaky_bucket", Mode: "queue", Burst: limit.Amount{Number: 5},
	})
	decide(l, "a")
	done := make(chan outcome.Outcome, 1)
	go func() {
		o, _, _ := decide(l, "a")
		done <- o
	}()
	<-c.set // the request waits
	select {
	case <-done:
		t.Fatal("the request did not wait")
	default:
	}
	c.move(time.Hour)
	if o := <-done; o != outcome.Allowed {
		t.Errorf("outcome %s, want allowed", outcome.Names[o])
	}
}
