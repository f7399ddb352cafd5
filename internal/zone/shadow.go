package zone

import "math"

// ShadowedBy reports whether the zone never refuses a request, because another zone of the handler admits
// fewer. Most is the most that the other one admits of a key within the zone's window. It is false where that is
// not sure, as for limits that depend on the request.
func (z *Zone) ShadowedBy(other *Zone) (most int64, yes bool) {
	if z == other || !z.isSimple() || !other.isSimple() || len(other.Matchers)+len(other.Exempt) > 0 || *z.Cost != *other.Cost ||
		z.Key != other.Key || z.Template.Prefixes != other.Template.Prefixes || z.MissingKey != other.MissingKey {
		return 0, false
	}
	own, strict := z.Policy.Rule.Limit(), other.Policy.Rule.Limit()
	if own.Window == 0 || strict.Window == 0 { // calendar windows
		return 0, false
	}
	windows := math.Ceil(float64(own.Window) / float64(strict.Window))
	admitted := float64(max(strict.Events, other.Policy.Quota)) + float64(strict.Events)*windows
	return int64(admitted), admitted <= float64(min(own.Events, z.Policy.Quota))
}

// isSimple reports whether the zone has one limit for all requests, which it enforces, and what they cost is
// known when they come.
func (z *Zone) isSimple() bool {
	return z.Policy != nil && !z.Policy.Slots && z.KeyRules == nil && z.Enforce == nil &&
		!z.ChargesLate() && z.Fields == nil && z.Cost.From == ""
}
