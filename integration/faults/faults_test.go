//go:build deep

package faults_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// fault is something that happens to a store under load.
type fault struct {
	name string

	// begin starts the fault. end cures it, if it does not cure itself, and returns when the
	// store could answer again.
	begin func(t *testing.T)
	end   func(t *testing.T) time.Time

	// dark: nothing is charged in the store from begin to end.
	dark bool
	// answers: the store goes on answering, so no request should go undecided.
	answers bool
	// lost is how much of what was charged may be forgotten: at most the limit once more.
	lost int
}

const (
	// faultSlowest bounds the time of any request under a fault on an idle machine: the deadline
	// of a decision and 20 ms.
	faultSlowest = 70 * time.Millisecond

	// faultBack bounds the time until service is normal after the cure, also on an idle machine.
	faultBack = 2 * time.Second

	// faultLength is how long a fault lasts on an idle machine, unless OUTAGE says otherwise.
	faultLength = 1200 * time.Millisecond
)

// endure keeps a fault going until all routes have answered under it, so that no request waits
// for the cure.
func (f *faultFleet) endure(t *testing.T, begun time.Time) {
	t.Helper()
	if length, err := time.ParseDuration(os.Getenv("OUTAGE")); err == nil {
		time.Sleep(length) // the fault itself
	} else if patient.Idle() {
		time.Sleep(faultLength)
	}
	for _, l := range f.loads {
		patient.Until(t, l.policy+" to answer under the fault", func() bool { return len(l.since(begun)) >= inARow })
	}
}

// TestFaults: everything that can happen to one Redis.
func TestFaults(t *testing.T) {
	patient.BesideOthers(t)
	redisServer := redistest.Start(t)
	proxy := faultproxy.Start(t, redisServer.Addr())
	f := startFaultFleet(t, "address "+proxy.Addr())
	do := func(args ...any) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			if err := redisServer.Admin().Do(context.Background(), args...).Err(); err != nil {
				t.Fatalf("%v: %v", args, err)
			}
		}
	}
	undo := func(args ...any) func(*testing.T) time.Time {
		return func(t *testing.T) time.Time { do(args...)(t); return time.Now() }
	}
	var stop func()
	faults := []fault{
		{
			name: "script flush", answers: true,
			begin: func(t *testing.T) { stop = again(t, do("script", "flush")) },
			end:   func(*testing.T) time.Time { stop(); return time.Now() },
		},
		{
			name:  "client kill",
			begin: func(t *testing.T) { stop = again(t, do("client", "kill", "type", "normal", "skipme", "yes")) },
			end:   func(*testing.T) time.Time { stop(); return time.Now() },
		},
		// Where a full Redis has no room for the states of a client, the instances' shares decide.
		{name: "maxmemory", answers: true, lost: faultLimit, begin: do("config", "set", "maxmemory", "1"), end: undo("config", "set", "maxmemory", "0")},
		{name: "read-only", dark: true, begin: do("replicaof", "127.0.0.1", redistest.FreePort(t)), end: undo("replicaof", "no", "one")},
		{
			name: "latency", dark: true,
			begin: func(*testing.T) { proxy.Delay(harness.DecisionTime() + 500*time.Millisecond) },
			end:   func(*testing.T) time.Time { proxy.Delay(0); return time.Now() },
		},
		{
			name: "half-open", dark: true,
			begin: func(*testing.T) {
				proxy.Inject(func(string) faultproxy.Fault { return faultproxy.SwallowCommand })
			},
			end: func(*testing.T) time.Time { proxy.Inject(nil); return time.Now() },
		},
		{
			name: "frozen", dark: true,
			begin: func(*testing.T) { redisServer.Freeze() },
			end:   func(*testing.T) time.Time { redisServer.Thaw(); return time.Now() },
		},
		{
			name: "restart", dark: true, lost: faultLimit,
			begin: func(*testing.T) { redisServer.Kill() },
			end:   func(*testing.T) time.Time { redisServer.Restart(); return time.Now() },
		},
	}
	f.sufferAll(t, faults)
}

// again does something every 5 ms until stopped.
func again(t *testing.T, do func(*testing.T)) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for {
			do(t)
			select {
			case <-done:
				return
			case <-ticker.C:
			}
		}
	}()
	return func() { close(done); <-ended }
}

// faultKey is the client under one fault.
func faultKey(name string) string { return strings.NewReplacer(" ", "", "-", "").Replace(name) }

// sufferAll has a fleet under load meet faults, one after the other.
func (f *faultFleet) sufferAll(t *testing.T, faults []fault) {
	for i := range faults {
		t.Run(faults[i].name, func(t *testing.T) { f.suffer(t, &faults[i]) })
	}
	f.checkLogs(t, len(faults))
}

// suffer has a fleet under load meet a fault, and checks what happens to the requests.
func (f *faultFleet) suffer(t *testing.T, c *fault) {
	row := &faultRow{key: faultKey(c.name), admitted: make(map[string]int), lost: make(map[string]int)}
	if c.lost > 0 {
		for _, policy := range policies {
			row.admitted[policy] = f.spend(t, policy, row.key, faultLimit*3/5) // so that there is something to lose
		}
	}
	start := time.Now()
	stop := f.load(row.key)
	defer stop()
	f.steady(t, start)
	goroutines := f.goroutines(t)

	begun := time.Now()
	c.begin(t)
	f.endure(t, time.Now())
	cured := c.end(t)

	row.back = f.steady(t, cured)
	patient.Until(t, "goroutines to end", func() bool {
		for i, n := range f.goroutines(t) {
			if n > goroutines[i]+10 {
				return false
			}
		}
		return true
	})
	stop()
	row.judge(t, f.loads, begun)
	row.check(t, c)
	f.checkCount(t, c, row)
	t.Logf("%s: %d requests, %d without a decision; slowest %v; back after %v; admitted %v of %d", c.name, row.requests, row.undecided, row.slowest,
		row.back, row.admitted, faultLimit)
}

// faultRow has the figures of one fault.
type faultRow struct {
	key                 string
	requests, undecided int
	slowest, back       time.Duration
	admitted            map[string]int // by a decision
	lost                map[string]int // without a decision; the store may have charged for them
}

// judge looks at all answers. It measures those that came since the fault.
func (row *faultRow) judge(t *testing.T, loads []*faultLoad, begun time.Time) {
	t.Helper()
	for _, l := range loads {
		for _, s := range l.since(time.Time{}) {
			row.requests++
			row.note(t, l.policy, s)
		}
		for _, s := range l.since(begun) {
			row.slowest = max(row.slowest, s.took)
		}
	}
}

// note counts an answer, and fails the test if it should not exist.
func (row *faultRow) note(t *testing.T, policy string, s sample) {
	t.Helper()
	switch {
	case s.err != nil:
		t.Errorf("%s: %v", policy, s.err)
	case s.decided && s.status == http.StatusOK:
		row.admitted[policy]++
	case s.decided && s.status == http.StatusTooManyRequests && s.retryAfter > 0:
	case policy == "allow" && s.status == http.StatusOK, policy == "deny" && s.status == http.StatusServiceUnavailable && s.retryAfter > 0:
		row.undecided++
		row.lost[policy]++
	default:
		t.Errorf("%s: an answer that should not be: %+v", policy, s)
	}
}

// check compares the figures with what is promised.
func (row *faultRow) check(t *testing.T, c *fault) {
	t.Helper()
	patient.Soon(t, "the slowest request", row.slowest, faultSlowest)
	patient.Soon(t, "all to be as usual", row.back, faultBack)
	if c.dark && row.undecided == 0 {
		t.Error("no request has met the fault")
	}
	if c.answers && row.undecided > row.requests/20 {
		t.Errorf("%d of %d requests were not decided by the store", row.undecided, row.requests)
	}
}

// checkCount uses up what is left, and compares everything that was admitted with the limit.
func (f *faultFleet) checkCount(t *testing.T, c *fault, row *faultRow) {
	t.Helper()
	for _, policy := range policies {
		admitted, lost := f.drain(t, policy, row.key)
		row.admitted[policy] += admitted
		row.lost[policy] += lost
		least, most := faultLimit-row.lost[policy], faultLimit+c.lost
		if n := row.admitted[policy]; n < least || n > most {
			t.Errorf("%s: %d admitted, want %d to %d: the limit is %d, the fault may lose %d, and %d went without an answer",
				policy, n, least, most, faultLimit, c.lost, row.lost[policy])
		}
	}
}

// checkLogs: Caddy logs a few lines about each fault, and nothing else.
func (f *faultFleet) checkLogs(t *testing.T, faults int) {
	t.Helper()
	for i, s := range f.servers {
		all, strange := s.Lines()
		if len(strange) > 0 {
			t.Errorf("%d lines that are no JSON, the first: %s", len(strange), strange[0])
		}
		for _, l := range all {
			if l.Level == "error" && l.Message != goneLine {
				t.Errorf("Caddy's log says: %s", l.Text)
			}
		}
		gone := bytes.Count(s.Log(), []byte(goneLine))
		t.Logf("Caddy %d: %d lines say that the store is gone", i+1, gone)
		if gone > 3*faults {
			t.Errorf("%d lines for %d faults", gone, faults)
		}
	}
}

const goneLine = "the rate limit store does not answer"
