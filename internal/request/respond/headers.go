package respond

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/request/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
)

const fieldRetryAfter = "Retry-After"

// setHeaders sets the headers that describe the limits that may refuse the request, with the seconds of Retry-After
// of a refusal.
func (p *Responder) setHeaders(w http.ResponseWriter, t *record, v *limiter.Verdict, retryAfter int64) {
	if p.hides && t.shown == nil {
		t.shown = new(binding)
		if !t.dryRun {
			*t.shown = t.binding
		}
	}
	t.adopt(v.Binding, retryAfter)
	if t.policy == nil { // a zone rejected the request before, and this is its error route
		return
	}
	if t.shown != nil {
		if e := v.MostBinding(func(e *limiter.Entry) bool { return !e.DryRun && isShown(e.Zone) }); e != nil && !e.Unknown() {
			t.shown.adopt(e, retryAfter)
		}
	}
	t.addItems(v)
	t.policies = p.addPolicies(t.policies, v)
	if len(p.Fields.sent) > 0 {
		t.Watcher = t.by().with(&p.Fields)
	}
	by := t.by()
	if by == nil {
		return
	}
	list := t.list[:]
	if len(by.sent) > len(list) {
		list = make([]string, len(by.sent))
	}
	t.set(w.Header(), by, list)
}

func isShown(z *zone.Zone) bool { return !z.Hidden() }

// set writes the headers of a decision. Each value has its own slice, because later handlers
// may change values in place.
func (t *record) set(header http.Header, f *Fields, values []string) {
	for i, field := range f.sent {
		name := f.names[i]
		if values[i] = t.value(cmp.Or(t.shown, &t.binding), field); values[i] == "" {
			delete(header, name)
			continue
		}
		header[name] = values[i : i+1 : i+1]
	}
}

// value returns the value of a field, or "" if it has none.
func (t *record) value(b *binding, field string) string {
	switch {
	case field == "RateLimit-Policy":
		return t.policies
	case b.policy == nil: // clients see none of the zones
		return ""
	case field == "RateLimit":
		return t.rateLimit(b)
	case field == "X-RateLimit-Replenish-Rate":
		return b.policy.ReplenishFor(b.override, b.quota)
	case field == "X-RateLimit-Reset" && b.policy.Slots: // it is not known when slots come back
		return ""
	case field == "X-RateLimit-Retry-After" && b.retryAfter == 0:
		return ""
	}
	return strconv.FormatInt(b.number(field), 10)
}

// rateLimit returns the value of RateLimit: the zone that binds the client most comes first.
func (t *record) rateLimit(b *binding) string {
	text := t.text[:0]
	if t.inUse || len(t.items) > 1 {
		text = make([]byte, 0, (1+min(len(t.items), mostItems))*len(t.text))
	}
	t.inUse = true
	text = b.appendTo(text)
	more := mostItems - 1
	for _, m := range t.items {
		if !m.sameZone(&b.item) && more > 0 {
			more--
			text = m.appendTo(append(text, separator...))
		}
	}
	return unsafe.String(unsafe.SliceData(text), len(text)) // nothing writes to it any more
}

// mostItems bounds the items of RateLimit, as a proxy or a client may bound the length of a field.
const mostItems = 10

// item is what RateLimit says of a zone.
type item struct {
	policy          *zone.QuotaPolicy // the zone's; nil if the store was not asked
	remaining, next int64             // next are whole seconds until more of the quota is back
}

func itemOf(e *limiter.Entry) item {
	return item{e.Policy, e.Decision.Remaining, zone.CeilSeconds(e.Waits().Next)}
}

func (m *item) sameZone(o *item) bool { return m.policy.ItemPrefix == o.policy.ItemPrefix }

func (m *item) appendTo(b []byte) []byte {
	b = strconv.AppendInt(append(b, m.policy.ItemPrefix...), m.remaining, 10)
	if m.next > 0 {
		b = strconv.AppendInt(append(b, zone.ParamNextQuota...), m.next, 10)
	}
	return b
}

// addItems adds the zones of a verdict to those of which RateLimit tells.
func (t *record) addItems(v *limiter.Verdict) {
	if t.items == nil && len(v.Entries) == 1 { // which is all that RateLimit tells, as no other handler adds to it
		return
	}
	if n := len(v.Entries); n > 1 {
		t.items = slices.Grow(t.items, min(n, mostItems))
	}
	for i := range v.Entries {
		e := &v.Entries[i]
		if e.DryRun || !isShown(e.Zone) || e.Unknown() {
			continue
		}
		m := itemOf(e)
		if j := slices.IndexFunc(t.items, func(o item) bool { return m.sameZone(&o) }); j >= 0 {
			t.items[j] = m // handlers can share a zone
		} else if len(t.items) < mostItems {
			t.items = append(t.items, m)
		}
	}
}

const separator = ", "

// addPolicies adds the zones that may refuse a request to the RateLimit-Policy of the handlers before, each once.
func (p *Responder) addPolicies(before string, v *limiter.Verdict) string {
	if before == "" && p.policies != "" && len(v.Entries) == len(p.Zones) && v.Outcome != outcome.Local {
		return p.policies
	}
	text := before
	for i := range v.Entries {
		e := &v.Entries[i]
		if item := e.Policy.ItemFor(e.Decision.Override, e.Decision.Quota); !e.DryRun && isShown(e.Zone) && !hasPolicy(before, item) {
			text = appendPolicy(text, item)
		}
	}
	return text
}

func appendPolicy(text, item string) string {
	if text == "" {
		return item
	}
	return text + separator + item
}

// hasPolicy reports whether a RateLimit-Policy contains an item.
func hasPolicy(text, item string) bool {
	return text != "" && strings.Contains(separator+text+separator, separator+item+separator)
}
