package respond

import (
	"slices"
	"strconv"

	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// mostItems bounds the items of RateLimit, as a proxy or a client may bound the length of a field.
const mostItems = 10

// item is what RateLimit says of a zone.
type item struct {
	prefix          string // the beginning of its text, which names the zone
	remaining, next int64
}

func itemOf(v *limiter.Verdict, i int) item {
	d, p := &v.Decisions[i], v.Entries[i].Policy
	return item{p.ItemPrefix, d.Remaining, zone.CeilSeconds(p.Waits(d, v.Checks[i].Cost).Next)}
}

func (m item) appendTo(b []byte) []byte {
	b = strconv.AppendInt(append(b, m.prefix...), m.remaining, 10)
	if m.next > 0 {
		b = strconv.AppendInt(append(b, zone.ParamNextQuota...), m.next, 10)
	}
	return b
}

// own returns the item of the zone that binds the client most.
func (t *record) own() item { return item{t.policy.ItemPrefix, t.numbers.remaining, t.numbers.next} }

// describesEnforced reports whether the record describes a zone that the client sees.
func (t *record) describesEnforced() bool { return t.policy != nil && !t.dryRun }

// addItems adds the zones of a verdict to those of which RateLimit tells, beside the one that binds the
// client most. Before is that of the handlers before, if any.
func (t *record) addItems(v *limiter.Verdict, before item) {
	t.others = slices.Grow(t.others, min(v.Enforced, mostItems-1))
	if before.prefix != "" {
		t.addItem(before)
	}
	for i := range v.Enforced {
		if isShown(v.Entries[i].Zone) {
			t.addItem(itemOf(v, i))
		}
	}
}

func (t *record) addItem(m item) {
	if m.prefix == t.policy.ItemPrefix {
		return
	}
	if i := slices.IndexFunc(t.others, func(o item) bool { return o.prefix == m.prefix }); i >= 0 {
		t.others[i] = m // handlers can share a zone
	} else if len(t.others) < mostItems-1 {
		t.others = append(t.others, m)
	}
}

// rateLimit appends the value of RateLimit: the zone that binds the client most comes first.
func (t *record) rateLimit(b []byte) []byte {
	b = t.own().appendTo(b)
	for _, m := range t.others {
		if m.prefix != t.policy.ItemPrefix { // a later handler's zone of the same name may bind now
			b = m.appendTo(append(b, policySeparator...))
		}
	}
	return b
}
