package caddyratelimit

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// attempt is one request on its way to a decision: the zones that it met, what is asked
// of the store for each, and what the store decided.
type attempt struct {
	zones     []*Zone
	checks    []store.Check
	decisions []algorithms.Decision
	holds     bool // something is held until the request is over
}

var attempts = sync.Pool{New: func() any { return new(attempt) }}

// free forgets the request.
func (a *attempt) free() {
	clear(a.zones)
	clear(a.checks)
	a.zones, a.checks, a.decisions, a.holds = a.zones[:0], a.checks[:0], a.decisions[:0], false
	attempts.Put(a)
}

// errEarly is as Caddy's own matchers of addresses have it: before the handshake is
// complete anybody may have sent the request, and the client will send it again.
var errEarly = errors.New("TLS handshake not complete, the client's address cannot be verified")

// collect sorts the request into its zones.
func (a *attempt) collect(zones []*Zone, r *http.Request, repl *caddy.Replacer) error {
	for _, z := range zones {
		match, err := z.matchers.AnyMatchWithError(r)
		if err != nil {
			return err
		}
		if !match {
			continue
		}
		if z.key.early && r.TLS != nil && !r.TLS.HandshakeComplete {
			return caddyhttp.Error(http.StatusTooEarly, errEarly)
		}
		check := store.Check{Rule: z.rule, Key: z.key.expand(repl), Cost: z.cost}
		if z.lends && z.cost > 0 {
			check.Hold = newHold()
			a.holds = true
		}
		a.zones = append(a.zones, z)
		a.checks = append(a.checks, check)
		a.decisions = append(a.decisions, algorithms.Decision{})
	}
	return nil
}

// decide finds out whether a request may pass, and lets it wait for its turn. If done is
// true, or err is not nil, the request ends here. If it may pass, what it holds must be
// released when it is over.
func (h *Handler) decide(w http.ResponseWriter, r *http.Request) (held *hold, done bool, err error) {
	a := attempts.Get().(*attempt)
	defer a.free()
	repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if err := a.collect(h.zones, r, repl); err != nil {
		return nil, true, err
	}
	if len(a.zones) == 0 {
		return nil, false, nil
	}
	var p patience
	held, err = h.ask(h.store, a, r, &p)
	if err != nil && err != errLeft {
		h.store.shared.health.report(err, h.logger)
		held, err = h.fallBack(a, r, &p)
	}
	switch {
	case err == errLeft:
		return nil, true, caddyhttp.Error(statusClientClosedRequest, err)
	case err != nil:
		return nil, true, deny(w, r)
	case len(a.zones) == 0: // nobody has decided, so there is nothing to tell
		return nil, false, nil
	}
	binding, refused := a.binding()
	h.answer.setHeaders(w.Header(), a, binding)
	if !refused {
		return held, false, nil
	}
	h.note(a, binding, r)
	repl.Set("http.rate_limit.exceeded.name", a.zones[binding].name)
	return nil, true, caddyhttp.Error(h.Status, a.zones[binding].exceeded)
}

// pass asks the store, again after a wait if the zones allow one, until it is clear
// whether the request may pass; and waits for its turn. A client that leaves takes back
// no charge but its turn and what it holds, and breaks off no call: neither is for
// clients to decide.
func (h *Handler) pass(a *attempt, u use, r *http.Request, p *patience) (held *hold, err error) {
	for {
		if err := u.Take(detached{r.Context()}, a.checks, a.decisions); err != nil {
			return nil, err
		}
		u.health.report(nil, h.logger)
		if !a.refused() {
			break
		}
		wait := p.next(a)
		if wait <= 0 {
			return nil, nil
		}
		if !sleep(r.Context(), wait) {
			return nil, errLeft
		}
	}
	if a.holds {
		held = &hold{use: u, corrections: a.held()}
	}
	if turn := a.delay(); turn > 0 && !sleep(r.Context(), turn) {
		u.Settle(append(a.turns(), a.held()...)...)
		return nil, errLeft
	}
	return held, nil
}

func (a *attempt) refused() bool {
	for i := range a.decisions {
		if !a.decisions[i].Allowed {
			return true
		}
	}
	return false
}

// binding picks the zone that the client should hear of: of those that refuse the one
// with the longest wait, and if none does the one with the smallest share left.
func (a *attempt) binding() (index int, refused bool) {
	wait, share := time.Duration(-1), 2.0
	for i := range a.decisions {
		d := &a.decisions[i]
		if !d.Allowed {
			if d.RetryAfter > wait {
				index, wait, refused = i, d.RetryAfter, true
			}
			continue
		}
		if left := float64(d.Remaining) / float64(max(1, d.Quota)); !refused && left < share {
			index, share = i, left
		}
	}
	return index, refused
}

// note writes a debug line about a refusal.
func (h *Handler) note(a *attempt, binding int, r *http.Request) {
	c := h.logger.Check(zap.DebugLevel, "rate limit exceeded")
	if c == nil {
		return
	}
	clientIP, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	fields := []zap.Field{
		zap.String("zone", a.zones[binding].name),
		zap.Duration("wait", a.decisions[binding].RetryAfter),
		zap.String("remote_ip", remoteIP(r)),
		zap.String("client_ip", clientIP),
	}
	if h.LogKey != nil && *h.LogKey {
		fields = append(fields, zap.String("key", a.checks[binding].Key))
	}
	c.Write(fields...)
}
