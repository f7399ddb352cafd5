package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestBreaker tells the life of a breaker: what is asked of it, how many of the calls are made,
// and what a probe finds if one is due.
func TestBreaker(t *testing.T) {
	down := errors.New("down")
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker()
		opened, calls := 0, 0
		b.opened = func() { opened++ }
		ask := func(outcome error) error {
			if err := b.refuses(t.Context()); err != nil {
				return err
			}
			return b.run(func() error { calls++; return outcome })
		}
		for _, step := range []struct {
			what    string
			after   time.Duration
			due     bool
			asks    int
			outcome error // of the probe, if it is due, and of the calls
			calls   int
			state   string
		}{
			{"works", 0, false, 100, nil, 100, "closed"},
			{"four failures", 0, false, 4, down, 4, "closed"},
			{"one success between", 0, false, 1, nil, 1, "closed"},
			{"four more", 0, false, 4, down, 4, "closed"},
			{"the fifth opens it", 0, false, 100, down, 1, "open"},
			{"nobody calls", openFor - 1, false, 100, nil, 0, "open"},
			{"the probe fails", 2, true, 100, down, 0, "open"},
			{"and is not due again at once", openFor - 1, false, 100, down, 0, "open"},
			{"no request probes, even after a long time", time.Hour, true, 100, down, 0, "open"},
			{"a probe succeeds", openFor + 1, true, 100, nil, 100, "closed"},
			{"it counts anew", 0, false, 4, down, 4, "closed"},
			{"what says nothing of redis counts for nothing", 0, false, 50, store.ErrClosed, 50, "closed"},
			{"nor do callers that leave", 0, false, 50, context.Canceled, 50, "closed"},
			{"the fifth", 0, false, 10, down, 1, "open"},
		} {
			time.Sleep(step.after)
			if due := b.due(); due != step.due {
				t.Fatalf("%s: a probe is due: %v, want %v", step.what, due, step.due)
			}
			if step.due {
				b.probe(func() error { return step.outcome })
			}
			calls = 0
			for range step.asks {
				err := ask(step.outcome)
				if step.outcome != nil && !errors.Is(err, step.outcome) {
					t.Fatalf("%s: %v does not tell the cause", step.what, err)
				}
			}
			if calls != step.calls || b.state() != step.state {
				t.Fatalf("%s: %d calls, want %d; %s, want %s", step.what, calls, step.calls, b.state(), step.state)
			}
		}
		if err := ask(nil); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, down) {
			t.Errorf("while open: %v, want %v with its cause", err, store.ErrUnavailable)
		}
		if opened != 4 {
			t.Errorf("told %d times that it opened, want 4", opened)
		}
	})
}

// TestRequestsWaitForAProbe: requests that come during a probe wait for its result, but no longer
// than they have time. Requests that come before it are refused at once.
func TestRequestsWaitForAProbe(t *testing.T) {
	const takes = 20 * time.Millisecond
	for _, c := range []struct {
		name    string
		outcome error
		have    time.Duration // how long the requests may wait
		waited  time.Duration
		pass    bool
	}{
		{"redis is back", nil, time.Second, takes, true},
		{"redis is still away", errors.New("down"), time.Second, takes, false},
		{"no time to wait", nil, takes / 2, takes / 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBreaker()
				for range openAfter {
					_ = b.run(func() error { return errors.New("down") })
				}
				time.Sleep(openFor + 1)
				ask := func() (waited time.Duration, err error) {
					ctx, cancel := context.WithTimeout(t.Context(), c.have)
					defer cancel()
					begun := time.Now()
					err = b.refuses(ctx)
					return time.Since(begun), err
				}
				if waited, err := ask(); waited != 0 || !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("before the probe: %v after %v", err, waited)
				}
				var all sync.WaitGroup
				all.Go(func() {
					b.probe(func() error { time.Sleep(takes); return c.outcome })
				})
				synctest.Wait()
				for range 100 {
					all.Go(func() {
						waited, err := ask()
						if waited != c.waited || (err == nil) != c.pass || err != nil && !errors.Is(err, store.ErrUnavailable) {
							t.Errorf("%v after %v, want to wait for %v", err, waited, c.waited)
						}
					})
				}
				all.Wait()
				if waited, err := ask(); waited != 0 || (err == nil) != (c.outcome == nil) {
					t.Errorf("after the probe: %v after %v", err, waited)
				}
			})
		})
	}
}

// TestSettle: who knows that Redis answers has the breaker closed as soon as it may be, and learns why it is not if its probe
// fails.
func TestSettle(t *testing.T) {
	for _, c := range []struct {
		name    string
		since   time.Duration // since the breaker has opened
		outcome error         // of the probe
		probes  int
		waits   time.Duration // at least, and at most settlePause more
	}{
		{"just opened", 0, nil, 1, openFor},
		{"a probe is due", openFor + 1, nil, 1, 0},
		{"it opens again", openFor + 1, errors.New("too slow"), 3, settleTime},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBreaker()
				none := func() error { t.Error("a probe of a breaker that is closed"); return nil }
				if err := b.settle(t.Context(), none); err != nil {
					t.Errorf("closed: %v", err)
				}
				for range openAfter {
					_ = b.run(func() error { return errors.New("down") })
				}
				time.Sleep(c.since)
				began, probes := time.Now(), 0
				err := b.settle(t.Context(), func() error { probes++; return c.outcome })
				waited := time.Since(began)
				if !errors.Is(err, c.outcome) || c.outcome != nil && !errors.Is(err, store.ErrUnavailable) || (b.state() == store.BreakerClosed) != (c.outcome == nil) {
					t.Errorf("%v, and it is %s", err, b.state())
				}
				if probes != c.probes || waited < c.waits || waited > c.waits+settlePause {
					t.Errorf("%d probes in %v, want %d in %v", probes, waited, c.probes, c.waits)
				}
			})
		})
	}
}

// TestQueueIsNoFault: requests that wait for longer than the timeout are decided, as long as calls are
// answered. Those that would wait for very long fail, with an error that says that this process is busy.
func TestQueueIsNoFault(t *testing.T) {
	const takes = 40 * time.Millisecond // of a timeout of 50
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 5, Window: time.Hour})
	for _, c := range []struct {
		requests int
		busy     bool
	}{
		{5_000, false}, // which wait for up to 0.4 s
		{20_000, true}, // which would wait for 1.6 s
	} {
		t.Run(fmt.Sprint(c.requests), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := farBatcher(takes, func(*call) {})
				var decided, busy atomic.Int64
				var all sync.WaitGroup
				for i := range c.requests {
					all.Go(func() {
						begun := time.Now()
						err := b.do(t.Context(), request(rule, fmt.Sprint("client ", i), 1))
						switch took := time.Since(begun); {
						case err == nil:
							decided.Add(1)
						case !errors.Is(err, store.ErrBusy) || Failure(err) != store.FailureBusy || MayHaveRun(err):
							t.Errorf("after %v: %v, kind %s, may have run: %v", took, err, Failure(err), MayHaveRun(err))
						case took != b.patience:
							t.Errorf("busy after %v, want %v", took, b.patience)
						default:
							busy.Add(1)
						}
					})
				}
				all.Wait()
				t.Logf("%d decided, %d came when this process was too busy", decided.Load(), busy.Load())
				if (busy.Load() > 0) != c.busy || decided.Load() == 0 {
					t.Errorf("%d decided, %d busy", decided.Load(), busy.Load())
				}
				time.Sleep(2 * idleTime) // until idle workers end
			})
		})
	}
}

// TestHangEndsWhatWaits: when two calls in a row got no answer, what has waited for as long as a call may take fails, and
// nothing waits for longer. When another call is answered, requests have time again.
func TestHangEndsWhatWaits(t *testing.T) {
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 5, Window: time.Hour})
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		b := farBatcher(40*time.Millisecond, nil)
		b.send = func(ctx context.Context, _ *call) error {
			if !hangs.Load() {
				time.Sleep(40 * time.Millisecond)
				return nil
			}
			deadline, _ := ctx.Deadline()
			time.Sleep(time.Until(deadline))
			return os.ErrDeadlineExceeded
		}
		flood := func(name string, most time.Duration, hung bool) {
			var all sync.WaitGroup
			for i := range 5_000 {
				all.Go(func() {
					begun := time.Now()
					err := b.do(t.Context(), request(rule, fmt.Sprint(name, i), 1))
					if took := time.Since(begun); took > most || (Failure(err) == store.FailureTimeout) != hung || (err == nil) == hung {
						t.Errorf("%s: %v after %v", name, err, took)
					}
				})
			}
			all.Wait()
		}
		flood("well", time.Second, false)
		hangs.Store(true)
		flood("hangs", 3*b.timeout, true)
		hangs.Store(false)
		if err := b.do(t.Context(), request(rule, "one", 1)); err != nil {
			t.Error(err)
		}
		flood("well again", time.Second, false)
		time.Sleep(2 * idleTime)
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.deadlines.first != nil || b.deadlines.last != nil || b.head != nil || b.deadlines.set || b.waiting+b.calls != 0 {
			t.Errorf("left of those who waited: %+v", b.deadlines)
		}
	})
}

// TestOneLostReplyIsNoHang: a call that is not answered says nothing of Redis if others were, so what waits
// goes on to wait.
func TestOneLostReplyIsNoHang(t *testing.T) {
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 5, Window: time.Hour})
	synctest.Test(t, func(t *testing.T) {
		var calls, lost atomic.Int64
		b := farBatcher(40*time.Millisecond, nil)
		b.send = func(context.Context, *call) error {
			if calls.Add(1) == 20 {
				time.Sleep(50 * time.Millisecond)
				return os.ErrDeadlineExceeded
			}
			time.Sleep(40 * time.Millisecond)
			return nil
		}
		var all sync.WaitGroup
		for i := range 5_000 {
			all.Go(func() {
				if err := b.do(t.Context(), request(rule, fmt.Sprint("client ", i), 1)); err != nil {
					lost.Add(1)
				}
			})
		}
		all.Wait()
		if n := lost.Load(); n == 0 || n > maxShare {
			t.Errorf("%d requests failed, want those of one call", n)
		}
		time.Sleep(2 * idleTime)
	})
}

// pair returns the two ends of a TCP connection, ours as go-redis gets it.
func pair(t *testing.T) (ours *bounded, theirs net.Conn) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	must(t, err)
	if theirs, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = conn.Close(), theirs.Close() })
	return bound(conn).(struct {
		*bounded
		syscall.Conn
	}).bounded, theirs
}

// TestKeptFromRunning: what happens while this process does not run is no fault of Redis. A reply that came
// before the deadline is read after it, and a write that comes after its deadline is made.
func TestKeptFromRunning(t *testing.T) {
	ours, theirs := pair(t)
	over := time.Now().Add(-time.Second)
	ping := []byte("*1\r\n$4\r\nping\r\n")
	buffer := make([]byte, 100)
	for round := range 3 {
		must(t, ours.SetWriteDeadline(time.Now().Add(time.Nanosecond)))
		ours.writeFor = time.Minute // it was set in time, and this goroutine did not run for long
		if n, err := ours.Write(ping); n != len(ping) || err != nil {
			t.Fatalf("round %d: %d bytes written, %v", round, n, err)
		}
		if n, err := theirs.Read(buffer); n != len(ping) || err != nil {
			t.Fatal(n, err)
		}
		if _, err := theirs.Write([]byte("+PONG\r\n")); err != nil {
			t.Fatal(err)
		}
		must(t, ours.SetReadDeadline(over))
		if n, err := ours.Read(buffer); string(buffer[:n]) != "+PONG\r\n" || err != nil {
			t.Fatalf("round %d: read %q, %v", round, buffer[:n], err)
		}
	}
	must(t, ours.SetWriteDeadline(over))
	if _, err := ours.Write(ping); !errors.Is(err, os.ErrDeadlineExceeded) || MayHaveRun(err) {
		t.Errorf("a write that did not begin in its time: %v, may have run: %v", err, MayHaveRun(err))
	}
}

// TestSetupIsNotSent: if Redis is silent while a connection is set up, no command was sent, so it can be
// repeated.
func TestSetupIsNotSent(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // it accepts, as the kernel does for a Redis that is frozen
	must(t, err)
	defer listener.Close()
	n := open(t, listener.Addr().String(), 50*time.Millisecond)
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 5, Window: time.Hour})
	for range 3 {
		if err := n.Do(t.Context(), request(rule, "key", 1), false); Failure(err) != store.FailureTimeout || MayHaveRun(err) {
			t.Errorf("%v: kind %s, may have run: %v", err, Failure(err), MayHaveRun(err))
		}
	}
	r := request(rule, "key", 1)
	if n.DoAll(t.Context(), []*Request{r}, false); r.Err == nil || MayHaveRun(r.Err) {
		t.Errorf("an adjustment: %v, may have run: %v", r.Err, MayHaveRun(r.Err))
	}
}
