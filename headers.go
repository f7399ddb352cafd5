package caddyratelimit

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

const fieldRetryAfter = "Retry-After"

// answer writes what clients get to see.
type answer struct {
	fields fieldNames
	jitter float64
	all    string // RateLimit-Policy where a request met all zones; empty if it depends
	zones  int
}

func newAnswer(h *Handler, names fieldNames) *answer {
	a := &answer{fields: names, zones: len(h.zones)}
	if h.Jitter != nil {
		a.jitter = *h.Jitter
	}
	if slices.ContainsFunc(h.zones, func(z *zone.Zone) bool { return z.HasPolicies || z.Overrides }) {
		return a // requests that met all zones may be told of different limits
	}
	for _, z := range h.zones {
		a.all = appendPolicy(a.all, z.Policy)
	}
	return a
}

// setHeaders writes the header fields of a decision. Each value has a slice of its own,
// for handlers behind may change values where they stand.
func (a *answer) setHeaders(header http.Header, t *told, values []string) {
	for i, f := range a.fields.sent {
		name := a.fields.names[i]
		if values[i] = t.value(f); values[i] == "" {
			delete(header, name)
			continue
		}
		header[name] = values[i : i+1 : i+1]
	}
}

// value is what a field says, "" if it has nothing to say.
func (t *told) value(f field) string {
	g, d := t.grant, &t.decision
	switch f {
	case rateLimitField:
		var room [96]byte
		b := append(room[:0], g.ItemPrefix...)
		b = strconv.AppendInt(b, d.Remaining, 10)
		if next := g.NextSeconds(d); next > 0 {
			b = append(b, zone.ParamNextQuota...)
			b = strconv.AppendInt(b, next, 10)
		}
		return string(b)
	case policyField:
		return t.policy
	case limitField, burstField:
		return strconv.FormatInt(d.Quota, 10)
	case remainingField:
		return strconv.FormatInt(d.Remaining, 10)
	case resetField:
		if !g.Lends { // nobody knows when slots come back
			return strconv.FormatInt(t.reset(), 10)
		}
	case retryAfterField:
		if t.retryAfter > 0 {
			return strconv.FormatInt(t.retryAfter, 10)
		}
	case replenishField:
		return g.Replenish
	case requestedField:
		return strconv.FormatInt(t.cost, 10)
	}
	return ""
}

// reset is when the full quota is back, in whole seconds. What was refused may be asked
// for by then.
func (t *told) reset() int64 { return max(zone.CeilSeconds(t.decision.ResetAfter), t.retryAfter) }

// retryAfter is the wait in whole seconds, never shorter than it is.
func (a *answer) retryAfter(g *zone.QuotaPolicy, d *algorithms.Decision) int64 {
	wait := g.Wait(d)
	if g.Lends && !d.Banned {
		wait = time.Second // a slot may come back at any time
	}
	if a.jitter > 0 {
		wait += time.Duration(rand.Float64() * a.jitter * float64(wait))
	}
	return max(1, g.NextSeconds(d), zone.CeilSeconds(wait))
}

// policy is the value of RateLimit-Policy for the zones that may refuse a request.
func (a *answer) policy(t *attempt) (text string) {
	if a.all != "" && len(t.zones) == a.zones {
		return a.all
	}
	for i := range t.firm {
		text = appendPolicy(text, t.policyOf(i))
	}
	return text
}

// policyOf has the policy that holds for the key in a zone.
func (a *attempt) policyOf(i int) *zone.QuotaPolicy {
	if d := &a.decisions[i]; d.Override != "" {
		return a.grants[i].ForOverride(d.Quota)
	}
	return a.grants[i]
}

const policySeparator = ", "

func appendPolicy(text string, g *zone.QuotaPolicy) string {
	if text == "" {
		return g.PolicyItem
	}
	return text + policySeparator + g.PolicyItem
}

// hasPolicy tells whether an item is among those of a RateLimit-Policy.
func hasPolicy(text string, g *zone.QuotaPolicy) bool {
	return strings.Contains(policySeparator+text+policySeparator, policySeparator+g.PolicyItem+policySeparator)
}
