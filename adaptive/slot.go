package adaptive

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/gate"
	"github.com/seed-161337e5/caddyratelimit/internal/hangup"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/writers"
)

var (
	errOverloaded = errors.New("the upstream is overloaded")
	errOverShare  = errors.New("this key asks for more than its share of an overloaded upstream")
	errLeft       = errors.New("client left while waiting for a slot")
)

// statusLeft is the status of a request whose client has left. Only logs show it.
const statusLeft = 499

// eventOverloaded is the event of the first refusal in a minute.
const eventOverloaded = "rate_limit_overloaded"

func now() int64 { return int64(clock.System{}.Now()) }

// slot is what a request takes in the upstream, and the writer that sees its response begin.
type slot struct {
	writers.Response
	writers.HeaderOnly
	handler *Handler
	request placeholder.Request
	place   *gate.Place // nil while the request does not have the slot
	answer  gate.Answer // of no use to anybody before the response has begun
}

// ServeHTTP implements [caddyhttp.MiddlewareHandler]: wait for a slot, next, and free the slot.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) (err error) {
	s := &slot{handler: h, request: placeholder.RequestOf(r), answer: gate.Left}
	s.ResponseWriter, s.Watcher = w, s
	id, class, err := h.sort(s)
	if err != nil {
		return err
	}
	came := now()
	place, running := h.limit.gate.Enter(came, id, class)
	if !running {
		err = h.queue(w, r, place)
	}
	h.limit.waits[class].Observe(time.Duration(now() - came))
	if err != nil {
		h.limit.refused[class].Add(1)
		return err
	}
	s.place = place
	returned := false
	defer func() {
		if returned && !s.Begun {
			s.Begin(writers.StatusOf(err))
		}
		s.free()
	}()
	err = next.ServeHTTP(&s.Response, r)
	returned = true
	return err
}

// queue waits until the request has a slot. Its error says why the request gets none.
func (h *Handler) queue(w http.ResponseWriter, r *http.Request, p *gate.Place) error {
	g := h.limit.gate
	timer := time.NewTimer(time.Duration(h.MaxWait))
	defer timer.Stop()
	client := hangup.Watch(r)
	defer client.Forget()
	select {
	case granted := <-p.Ready():
		if granted {
			return nil
		}
	case <-timer.C:
		if !g.Leave(now(), p) && <-p.Ready() {
			return nil // just in time
		}
	case <-r.Context().Done():
		return h.abandon(p)
	case <-client.Left:
		return h.abandon(p)
	}
	return h.refuse(w, r, g.Refuse(now(), p))
}

// abandon forgets a request whose client has left.
func (h *Handler) abandon(p *gate.Place) error {
	h.limit.gate.Abandon(now(), p)
	return caddyhttp.Error(statusLeft, errLeft)
}

func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, why gate.Refusal) error {
	status, err := http.StatusServiceUnavailable, errOverloaded
	if why.Over {
		status, err = http.StatusTooManyRequests, errOverShare
	}
	w.Header().Set("Retry-After", strconv.FormatInt(why.RetryAfter(rand.Float64()), 10))
	if h.events.Wanted(eventOverloaded) && h.limit.told.Allow() {
		h.events.Emit(eventOverloaded, map[string]any{
			"name": h.Name, "reason": err.Error(), "status": status, "remote_ip": clientip.Remote(r), "client_ip": clientip.Client(r),
		})
	}
	return caddyhttp.Error(status, err)
}

// Begin implements [writers.Watcher]. Streams and slow readers hold no slot of an upstream that has answered.
func (s *slot) Begin(status int) http.Header {
	if !writers.IsFinal(status) {
		return nil
	}
	switch {
	case s.request.Context().Err() != nil: // nobody gets the response
	case status >= http.StatusInternalServerError:
		s.answer = gate.Failed
	default:
		s.answer = gate.Useful
	}
	if s.handler.Hold == "" {
		s.free()
	}
	return nil
}

// free gives the slot back. A request whose client has left keeps it for as long as requests have one on average,
// because most upstreams work on.
func (s *slot) free() {
	p, g, answer := s.place, s.handler.limit.gate, s.answer
	if p == nil {
		return
	}
	s.place = nil
	if answer == gate.Left {
		if hold := g.Hold(now(), p); hold > 0 {
			time.AfterFunc(hold, func() { g.Done(now(), p, gate.Left) })
			return
		}
	}
	g.Done(now(), p, answer)
}
