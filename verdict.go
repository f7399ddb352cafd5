package caddyratelimit

import (
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
}

var attempts = sync.Pool{New: func() any { return new(attempt) }}

// free forgets the request.
func (a *attempt) free() {
	clear(a.zones)
	clear(a.checks)
	a.zones, a.checks, a.decisions = a.zones[:0], a.checks[:0], a.decisions[:0]
	attempts.Put(a)
}

// decide finds out whether a request may pass. If done is true, or err is not nil, the
// request ends here.
func (h *Handler) decide(w http.ResponseWriter, r *http.Request) (done bool, err error) {
	a := attempts.Get().(*attempt)
	defer a.free()
	repl := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	for _, z := range h.zones {
		match, err := z.matchers.AnyMatchWithError(r)
		if err != nil {
			return true, err
		}
		if match {
			a.zones = append(a.zones, z)
			a.checks = append(a.checks, store.Check{Rule: z.rule, Key: z.key.expand(repl), Cost: z.cost})
			a.decisions = append(a.decisions, algorithms.Decision{})
		}
	}
	if len(a.zones) == 0 {
		return false, nil
	}
	if failed := h.take(a, r); failed {
		if h.OnStoreError == denyOnError {
			return true, deny(w, r)
		}
		return false, nil
	}
	binding, refused := a.binding()
	h.answer.setHeaders(w.Header(), a, binding)
	if !refused {
		return false, nil
	}
	h.note(a, binding, r)
	repl.Set("http.rate_limit.exceeded.name", a.zones[binding].name)
	return true, caddyhttp.Error(h.Status, a.zones[binding].exceeded)
}

// take asks the store, and tells whether it gave no answer. A client that leaves takes
// back no charge and breaks off no call: neither is for clients to decide.
func (h *Handler) take(a *attempt, r *http.Request) (failed bool) {
	health, err := h.store.Take(detached{r.Context()}, a.checks, a.decisions)
	health.report(err, h.OnStoreError, h.logger)
	return err != nil
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
