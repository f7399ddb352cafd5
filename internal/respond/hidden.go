package respond

import (
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// hidesAny reports whether clients do not see all of the zones.
func hidesAny(zones []*zone.Zone) bool {
	return slices.ContainsFunc(zones, func(z *zone.Zone) bool { return z.Hidden() })
}

// inHeaders returns the record that headers are made of. That is the record itself, unless a handler of the request
// has hidden zones. Then it is one that knows only of the zones that clients see.
func (t *record) inHeaders(p *Responder) *record {
	if t.shown == nil && p.hides {
		own := new(seenRecord)
		if t.describesEnforced() { // by handlers before, which hide nothing
			own.record = *t
			own.headerWatcher, own.others = headerWatcher{}, slices.Clone(t.others)
		}
		own.values, own.inUse = &own.own, false
		t.shown = &own.record
	}
	if t.shown == nil {
		return t
	}
	return t.shown
}

// adoptShown makes the record of headers describe the zone that binds the client most, of those that clients see.
func (t *record) adoptShown(v *limiter.Verdict, retryAfter int64) {
	i := v.BindingAmong(isShown)
	if i >= 0 && t.adopt(v, i) && !v.Decisions[i].Allowed {
		t.retryAfter = retryAfter
	}
}

func isShown(z *zone.Zone) bool { return !z.Hidden() }
