package caddyratelimit

import (
	"errors"
	"net/http"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// statusClientClosedRequest is for the log; nobody is there to read it.
const statusClientClosedRequest = 499

var errLeft = errors.New("client left while waiting for its turn")

// pause waits for so long, and reports whether the client stayed.
func (p *patience) pause(r *http.Request, d time.Duration) bool {
	over := make(chan struct{})
	timer := time.AfterFunc(d, func() { close(over) })
	defer timer.Stop()
	return p.sleep(r, over)
}

// sleep waits until a channel is closed, and reports whether the client stayed.
func (p *patience) sleep(r *http.Request, over <-chan struct{}) bool {
	if p.client == nil {
		p.client = watchClient(r)
	}
	select {
	case <-over:
		return true
	case <-r.Context().Done():
		return false
	case <-p.client.left:
		return false
	}
}

// over ends the watch for the client.
func (p *patience) over() {
	if p.client != nil {
		p.client.forget()
	}
}

// patience is how a request waits: for its turn, or to ask again where it is refused and
// its zones say max_wait.
type patience struct {
	since  time.Time
	poll   time.Duration
	client *client // nil if it has not waited yet
}

const (
	// minPause keeps a wait from becoming a spin.
	minPause = time.Millisecond

	// firstPoll and maxPoll are for zones where nobody can tell when there is room: a slot
	// comes back when some request ends.
	firstPoll = 10 * time.Millisecond
	maxPoll   = 250 * time.Millisecond
)

// next is how long to wait before asking again: as long as the longest of the zones that
// refuse. It is 0 if one of them would have to wait longer than it may.
func (p *patience) next(a *attempt) (wait time.Duration) {
	polled := false
	for i := range a.firm {
		if a.decisions[i].Allowed {
			continue
		}
		g, retry := a.grants[i], a.decisions[i].RetryAfter
		if g.MaxWait == 0 || retry == algorithms.Never || g.Queues || a.decisions[i].Banned {
			return 0
		}
		now := time.Now()
		if p.since.IsZero() {
			p.since, p.poll = now, firstPoll
		}
		if g.Lends {
			retry, polled = p.poll, true
		}
		retry = max(retry, minPause)
		if retry > g.MaxWait-now.Sub(p.since) {
			return 0
		}
		wait = max(wait, retry)
	}
	if polled {
		p.poll = min(2*p.poll, maxPoll)
	}
	return wait
}
