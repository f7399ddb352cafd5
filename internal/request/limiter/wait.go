package limiter

import (
	"net/http"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/hangup"
)

// retryWait is the waiting of a request: for its turn in a queue, or to ask the store again if the
// zones that refuse have a max_wait.
type retryWait struct {
	clock  clock.Clock
	waited bool            // whether since is set
	since  time.Duration   // when the first wait began
	poll   time.Duration   // the next wait for a slot
	left   <-chan struct{} // closed when the client has left; see package hangup
	forget func()          // stops watching the client; nil if the request has not waited yet
}

const (
	// minPause keeps a wait from becoming a busy loop.
	minPause = time.Millisecond

	// firstPoll and maxPoll bound the waits for slots, because it is not known when one comes
	// back.
	firstPoll = 10 * time.Millisecond
	maxPoll   = 250 * time.Millisecond
)

// next returns how long to wait before the store is asked again: the longest wait of the zones that
// refuse. It is 0 if one of them needs longer than its max_wait.
func (w *retryWait) next(v *Verdict) (wait time.Duration) {
	polled := false
	for i := range v.Entries {
		e := &v.Entries[i]
		if e.Decision.Allowed || e.DryRun {
			continue
		}
		waits := e.Waits()
		retry := waits.Retry
		if p := e.Policy; p.MaxWait == 0 || retry == algorithms.Never || p.Queues || e.Decision.Banned {
			return 0
		}
		now := w.clock.Now()
		if !w.waited {
			w.waited, w.since, w.poll = true, now, firstPoll
		}
		if waits.Slot {
			retry, polled = w.poll, true
		}
		retry = max(retry, minPause)
		if retry > e.Policy.MaxWait-(now-w.since) {
			return 0
		}
		wait = max(wait, retry)
	}
	if polled {
		w.poll = min(2*w.poll, maxPoll)
	}
	return wait
}

// pause waits for d, and reports whether the client has stayed.
func (w *retryWait) pause(r *http.Request, d time.Duration) bool {
	if timeline, ok := w.clock.(*clock.Timeline); ok {
		timeline.Sleep(d)
		return true
	}
	over := make(chan struct{})
	timer := w.clock.(clock.Timers).AfterFunc(d, func() { close(over) })
	defer timer.Stop()
	return w.sleep(r, over)
}

// sleep waits until over is closed, and reports whether the client has stayed.
func (w *retryWait) sleep(r *http.Request, over <-chan struct{}) bool {
	if w.forget == nil {
		w.left, w.forget = hangup.Watch(r)
	}
	select {
	case <-over:
		return true
	case <-r.Context().Done():
		return false
	case <-w.left:
		return false
	}
}

// over stops watching the client.
func (w *retryWait) over() {
	if w.forget != nil {
		w.forget()
	}
}
