package limiter_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/seed-161337e5/caddyratelimit" // the handler
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// queued is a request in a queue.
type queued struct {
	leave  context.CancelFunc
	served time.Time // when the handlers behind got it
}

// enqueue sends a request through a handler, and returns when the request waits or is over.
func enqueue(t *testing.T, h caddytest.Handler, status int) *queued {
	t.Helper()
	q := new(queued)
	w := httptest.NewRecorder()
	r := caddytest.Request(w, "203.0.113.7:1")
	var ctx context.Context
	ctx, q.leave = context.WithCancel(r.Context())
	t.Cleanup(q.leave)
	go func() {
		_ = h.ServeHTTP(w, r.WithContext(ctx), caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
			q.served = time.Now()
			w.WriteHeader(status)
			return nil
		}))
	}()
	synctest.Wait()
	return q
}

// queueOf returns how many turns a queue has, and how long they last.
func queueOf(t *testing.T, kept *caddytest.Kept, zone string) (turns int64, wait time.Duration) {
	t.Helper()
	d := kept.Peek(t, zone, "all")
	return d.Quota - d.Remaining, d.ResetAfter
}

// TestRefundOfTakenTurn: a response gives back the turn that its request has taken, and not the turn
// that the queue gave it first.
func TestRefundOfTakenTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := caddytest.KeepMemory(t, memorystore.Options{})
		h := caddytest.Load(t, `{`+kept.Option()+`"rate_limits": {"queue": {"key": "all", "algorithm": "leaky_bucket", "mode": "queue",
			"max_events": 10, "window": "1s", "burst": 100, "charge": {"status": ["2xx"]}}}}`)
		enqueue(t, h, 200)
		second, third := enqueue(t, h, 200), enqueue(t, h, 500)
		began := time.Now()
		second.leave()
		synctest.Wait()
		if turns, wait := queueOf(t, kept, "queue"); turns != 2 || wait != 200*time.Millisecond {
			t.Errorf("the queue has %d turns and lasts for %v, want 2 and 200ms", turns, wait)
		}
		time.Sleep(time.Second / 10)
		synctest.Wait()
		if waited := third.served.Sub(began); waited != time.Second/10 || !second.served.IsZero() {
			t.Errorf("the third request waited for %v, want the turn of the second one after 100ms; the second one was served at %v", waited, second.served)
		}
		if turns, wait := queueOf(t, kept, "queue"); turns != 0 || wait != 0 {
			t.Errorf("the queue has %d turns and lasts for %v, want none, because the last turn was given back", turns, wait)
		}
	})
}

// TestLeavingSeveralQueues: requests in two queues wait for both turns. Requests whose clients leave
// hand on all their turns, in any order.
func TestLeavingSeveralQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := caddytest.KeepMemory(t, memorystore.Options{})
		h := caddytest.Load(t, `{`+kept.Option()+`"rate_limits": {
			"fast": {"key": "all", "algorithm": "leaky_bucket", "mode": "queue", "max_events": 10, "window": "1s", "burst": 100},
			"slow": {"key": "all", "algorithm": "leaky_bucket", "mode": "queue", "max_events": 1, "window": "1s", "burst": 100}}}`)
		enqueue(t, h, 200)
		began := time.Now()
		var leaving []*queued
		for range 20 {
			leaving = append(leaving, enqueue(t, h, 200))
		}
		for _, q := range leaving[:10] {
			q.leave()
		}
		synctest.Wait()
		stays := enqueue(t, h, 200)
		for _, q := range leaving[10:] {
			q.leave()
		}
		synctest.Wait()
		for _, zone := range []string{"fast", "slow"} {
			if turns, _ := queueOf(t, kept, zone); turns != 2 {
				t.Errorf("zone %s has %d turns, want that of the first request and that of the one that stays", zone, turns)
			}
		}
		stays.leave()
		time.Sleep(returnTime)
		synctest.Wait()
		for _, zone := range []string{"fast", "slow"} {
			if turns, _ := queueOf(t, kept, zone); turns > 1 {
				t.Errorf("zone %s has %d turns, want at most 1", zone, turns)
			}
		}
		next := enqueue(t, h, 200)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if waited := next.served.Sub(began); next.served.IsZero() || waited != time.Second {
			t.Errorf("the next request waited for %v, want 1s", waited)
		}
	})
}

// returnTime is long enough to offer a turn again that the queue did not take back at first.
const returnTime = 300 * time.Millisecond
