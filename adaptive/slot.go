package adaptive

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

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

func now() int64 { return int64(clock.System{}.Now()) }

// slot is what a request takes in the upstream, and the writer that sees its response begin.
type slot struct {
	writers.Response
	handler *Handler
	request placeholder.Request
	place   gate.Place
	free    bool        // it was given back, or is held for a client that has left
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
	if !h.limit.gate.Enter(came, &s.place, id, class) {
		err = s.wait(r)
	}
	h.limit.waits[class].Observe(time.Duration(now() - came))
	if err != nil {
		return err
	}
	returned := false
	defer func() {
		if returned {
			s.Start(writers.StatusOf(err))
		}
		s.giveBack()
	}()
	err = next.ServeHTTP(&s.Response, r)
	returned = true
	return err
}

// wait waits until the request has its slot. Its error says why the request gets none.
func (s *slot) wait(r *http.Request) error {
	h, g, p := s.handler, s.handler.limit.gate, &s.place
	timer := time.NewTimer(time.Duration(h.MaxWait))
	defer timer.Stop()
	gone, forget := hangup.Watch(r)
	defer forget()
	left := false
	select {
	case <-p.Ready:
	case <-timer.C:
	case <-r.Context().Done():
		left = true
	case <-gone:
		left = true
	}
	switch running := g.Leave(now(), p); {
	case left:
		g.Done(now(), p, gate.Left)
		return caddyhttp.Error(statusLeft, errLeft)
	case running:
		return nil
	}
	status, err := http.StatusServiceUnavailable, errOverloaded
	over, after := g.Refuse(now(), p, rand.Float64())
	if over {
		status, err = http.StatusTooManyRequests, errOverShare
	}
	s.ResponseWriter.Header().Set("Retry-After", strconv.FormatInt(after, 10))
	return caddyhttp.Error(status, err)
}

// Begin implements [writers.Watcher]. Streams and slow readers hold no slot of an upstream that has answered.
func (s *slot) Begin(status int, _ http.Header) {
	switch {
	case s.request.Context().Err() != nil: // nobody gets the response
	case status >= http.StatusInternalServerError:
		s.answer = gate.Failed
	default:
		s.answer = gate.Useful
	}
	if s.handler.Hold == "" {
		s.giveBack()
	}
}

// giveBack gives the slot back once. A request whose client has left keeps it for as long as requests have one on average,
// because most upstreams work on.
func (s *slot) giveBack() {
	if s.free {
		return
	}
	s.free = true
	g := s.handler.limit.gate
	if s.answer == gate.Left {
		if hold := g.Hold(now(), &s.place); hold > 0 {
			time.AfterFunc(hold, func() { g.Done(now(), &s.place, gate.Left) })
			return
		}
	}
	g.Done(now(), &s.place, s.answer)
}
