package respond

import (
	"net/http"
	"strconv"
	"strings"
	"unsafe"

	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

const fieldRetryAfter = "Retry-After"

// set writes the headers of a decision. Each value has its own slice, because later handlers
// may change values in place.
func (f *Fields) set(header http.Header, t *record, values []string) {
	for i, field := range f.sent {
		name := f.names[i]
		if values[i] = t.value(field); values[i] == "" {
			delete(header, name)
			continue
		}
		header[name] = values[i : i+1 : i+1]
	}
}

// value returns the value of a field, or "" if it has none.
func (t *record) value(f field) string {
	p, n := t.policy, &t.numbers
	if p == nil && f != policyField { // clients see none of the zones
		return ""
	}
	switch f {
	case rateLimitField:
		b := t.rateLimit(t.getRoom())
		return unsafe.String(unsafe.SliceData(b), len(b)) // nothing writes to it any more
	case policyField:
		return t.policies
	case limitField, burstField:
		return strconv.FormatInt(n.quota, 10)
	case remainingField:
		return strconv.FormatInt(n.remaining, 10)
	case resetField:
		if !p.Slots { // it is not known when slots come back
			return strconv.FormatInt(t.reset(), 10)
		}
	case retryAfterField:
		if t.retryAfter > 0 {
			return strconv.FormatInt(t.retryAfter, 10)
		}
	case replenishField:
		return p.Replenish
	case requestedField:
		return strconv.FormatInt(t.cost, 10)
	}
	return ""
}

// getRoom returns room for the text of one value: the record's, or new memory if it is taken or too small.
func (t *record) getRoom() []byte {
	if t.inUse || len(t.others) > 0 {
		return make([]byte, 0, (2+len(t.others))*len(t.text))
	}
	t.inUse = true
	return t.text[:0]
}

// reset returns the seconds until the full quota is back, and at least Retry-After.
func (t *record) reset() int64 { return max(t.numbers.reset, t.retryAfter) }

// policiesOf returns the value of RateLimit-Policy for the zones that may refuse a request.
func (p *Responder) policiesOf(v *limiter.Verdict) (text string) {
	if p.policies != "" && len(v.Entries) == len(p.Zones) && v.Outcome != outcome.Local {
		return p.policies
	}
	for i := range v.Enforced {
		if v.Entries[i].Zone.Hidden() {
			continue
		}
		text = appendPolicy(text, policyOf(v, i))
	}
	return text
}

// policyOf returns the quota policy that holds for the key in a zone.
func policyOf(v *limiter.Verdict, i int) *zone.QuotaPolicy {
	if d := &v.Decisions[i]; d.Override != "" {
		return v.Entries[i].Policy.ForOverride(d)
	}
	return v.Entries[i].Policy
}

const policySeparator = ", "

func appendPolicy(text string, p *zone.QuotaPolicy) string {
	if text == "" {
		return p.PolicyItem
	}
	return text + policySeparator + p.PolicyItem
}

// hasPolicy reports whether a RateLimit-Policy contains an item.
func hasPolicy(text string, p *zone.QuotaPolicy) bool {
	return strings.Contains(policySeparator+text+policySeparator, policySeparator+p.PolicyItem+policySeparator)
}
