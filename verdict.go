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
// of the store for each, and what the store decided. The first firm of them may refuse;
// those behind are dry runs.
type attempt struct {
	zones     []*Zone
	grants    []*grant
	checks    []store.Check
	decisions []algorithms.Decision
	firm      int
	holds     bool     // something is held until the request is over
	late      bool     // what is charged depends on the response
	strips    []string // header fields that the response must not keep
}

var attempts = sync.Pool{New: func() any { return new(attempt) }}

// free forgets the request.
func (a *attempt) free() {
	clear(a.zones)
	clear(a.grants)
	clear(a.checks)
	*a = attempt{zones: a.zones[:0], grants: a.grants[:0], checks: a.checks[:0], decisions: a.decisions[:0]}
	attempts.Put(a)
}

// errEarly is as Caddy's own matchers of addresses have it: before the handshake is
// complete anybody may have sent the request, and the client will send it again.
var errEarly = errors.New("TLS handshake not complete, the client's address cannot be verified")

// collect sorts the request into its zones.
func (h *Handler) collect(a *attempt, r *http.Request, repl *caddy.Replacer) error {
	for _, z := range h.zones {
		match, err := z.matchers.AnyMatchWithError(r)
		if err != nil {
			return err
		}
		if !match {
			continue
		}
		if z.CostHeader != "" {
			a.strips = append(a.strips, z.CostHeader)
		}
		if z.key.early && r.TLS != nil && !r.TLS.HandshakeComplete {
			return caddyhttp.Error(http.StatusTooEarly, errEarly)
		}
		q := asked{grant: z.grant, key: z.key.expand(repl), cost: z.cost}
		if z.special {
			if err := z.judge(&q, r, repl, h.logger); err != nil {
				return err
			}
			if q.grant == nil {
				continue
			}
		}
		a.add(z, &q)
	}
	return nil
}

// add notes what is to be asked of the store for a zone.
func (a *attempt) add(z *Zone, q *asked) {
	check := store.Check{Rule: q.grant.rule, Key: q.key, Cost: q.cost, Apart: q.dry}
	if q.grant.lends && q.cost > 0 {
		check.Hold = newHold()
		a.holds = true
	}
	a.late = a.late || z.late
	a.zones = append(a.zones, z)
	a.grants = append(a.grants, q.grant)
	a.checks = append(a.checks, check)
	a.decisions = append(a.decisions, algorithms.Decision{})
	if !q.dry {
		a.swap(a.firm, len(a.zones)-1)
		a.firm++
	}
}

func (a *attempt) swap(i, j int) {
	a.zones[i], a.zones[j] = a.zones[j], a.zones[i]
	a.grants[i], a.grants[j] = a.grants[j], a.grants[i]
	a.checks[i], a.checks[j] = a.checks[j], a.checks[i]
}

// decide finds out whether a request may pass, and lets it wait for its turn. If done is
// true, or err is not nil, the request ends here. If it may pass, what it holds must be
// released when it is over.
func (h *Handler) decide(w http.ResponseWriter, r *http.Request) (held *hold, done bool, err error) {
	a := attempts.Get().(*attempt)
	defer a.free()
	repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if err := h.collect(a, r, repl); err != nil {
		return nil, true, err
	}
	if len(a.zones) == 0 {
		return a.unheld(), false, nil
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
		return a.unheld(), false, nil
	}
	h.noteDry(a, r, repl)
	if a.firm == 0 {
		return a.orUnheld(held), false, nil
	}
	binding, refused := a.binding()
	h.answer.setHeaders(w.Header(), a, binding)
	if !refused {
		return a.orUnheld(held), false, nil
	}
	h.note(a, binding, r)
	repl.Set("http.rate_limit.exceeded.name", a.zones[binding].name)
	if z := a.zones[binding]; z.Reserve != nil {
		return nil, true, unavailable(w, r, z.exceeded)
	}
	return nil, true, caddyhttp.Error(h.Status, a.zones[binding].exceeded)
}

// pass asks the store, again after a wait if the zones allow one, until it is clear
// whether the request may pass; and waits for its turn. A client that leaves takes back
// no charge but its turn and what it holds, and breaks off no call: neither is for
// clients to decide.
func (h *Handler) pass(a *attempt, u use, r *http.Request, p *patience) (held *hold, err error) {
	for n := len(a.checks); ; n = a.firm { // a dry run is not repeated
		if err := u.Take(detached{r.Context()}, a.checks[:n], a.decisions[:n]); err != nil {
			if n == a.firm {
				a.giveUp(u)
			}
			return nil, err
		}
		u.health.report(nil, h.logger)
		if !a.refused() {
			break
		}
		wait := p.next(a)
		if wait <= 0 {
			a.giveUp(u)
			return nil, nil
		}
		if !sleep(r.Context(), wait) {
			a.giveUp(u)
			return nil, errLeft
		}
	}
	if turn := a.delay(); turn > 0 && !sleep(r.Context(), turn) {
		u.Settle(a.unserved(0)...)
		return nil, errLeft
	}
	if a.holds || a.late {
		held = a.hold(u)
	}
	return held, nil
}

// giveUp gives back what dry runs have charged for a request that others refuse.
func (a *attempt) giveUp(u use) {
	if back := a.unserved(a.firm); len(back) > 0 {
		u.Settle(back...)
	}
}

func (a *attempt) refused() bool {
	for i := range a.firm {
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
	for i := range a.firm {
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

// noteDry tells of a zone that would refuse if it were not a dry run.
func (h *Handler) noteDry(a *attempt, r *http.Request, repl *caddy.Replacer) {
	name := ""
	for i := a.firm; i < len(a.decisions); i++ {
		if !a.decisions[i].Allowed {
			name = a.zones[i].name
			h.note(a, i, r)
		}
	}
	if a.firm < len(a.decisions) {
		repl.Set("http.rate_limit.exceeded.name", name)
	}
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
	if a.checks[binding].Apart {
		fields = append(fields, zap.Bool("dry_run", true))
	}
	if h.LogKey != nil && *h.LogKey {
		fields = append(fields, zap.String("key", a.checks[binding].Key))
	}
	c.Write(fields...)
}
