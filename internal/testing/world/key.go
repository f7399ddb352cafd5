package world

import (
	"cmp"
	"slices"
	"time"
)

// key is what happened to a key of a zone.
type key struct {
	*History
	Zone
	zone, key int
	admitted  []*Answer // with a cost
	refused   []*Answer
	unknown   []*Answer // which may have been charged
	late      int64     // costs that came later
}

func (h *History) key(zone, number int) *key {
	k := &key{History: h, Zone: h.Plan.Zones[zone], zone: zone, key: number}
	for i := range h.Answers {
		a := &h.Answers[i]
		if a.Zone != zone || a.Key != number {
			continue
		}
		k.late += a.Late
		switch {
		case a.Cost == 0 && a.Delta == 0:
		case a.Failure != "", a.Independent && h.Plan.has(unable): // a full Redis decides about it, and does not charge it
			k.unknown = append(k.unknown, a)
		case a.Charged:
			k.admitted = append(k.admitted, a)
		default:
			if !a.Decision.Allowed {
				k.refused = append(k.refused, a)
			}
			if a.Ended-a.Began >= timeout { // there was no answer, and the refusal of another is told: it may be charged
				k.unknown = append(k.unknown, a)
			}
		}
	}
	slices.SortStableFunc(k.admitted, func(a, b *Answer) int {
		// Of several at the same moment, the one came first that says that less is used.
		return cmp.Or(cmp.Compare(k.when(a), k.when(b)), cmp.Compare(a.Decision.Turn(), b.Decision.Turn()),
			cmp.Compare(a.Decision.Quota-a.Decision.Remaining, b.Decision.Quota-b.Decision.Remaining))
	})
	return k
}

// when is when Redis has decided, by the time of the world: what its clock said then, and what that was ahead.
func (h *History) when(a *Answer) time.Duration {
	told := time.Duration(a.Decision.At-epoch) * time.Microsecond
	for i := len(h.clocks) - 1; i >= 0; i-- {
		if at := told - h.clocks[i].offset; at >= max(h.clocks[i].from, a.Began)-time.Microsecond && at <= a.Ended {
			return at
		}
	}
	return told
}

// hasLost reports whether anything was lost that was charged.
func (h *History) hasLost() bool { return len(h.Losses) > 0 || len(h.forks) > 0 }

// lostFor reports whether the server that has made a decision cannot know of a charge, or an operator has reset the key.
func (k *key) lostFor(a, charged *Answer) bool {
	return k.forgotten(k.when(charged), k.when(a)) || k.unknownTo(a, charged)
}

// forgotten reports whether a key has lost by a time what it had charged at another, as Redis has, or because an operator
// has reset the key.
func (k *key) forgotten(charged, by time.Duration) bool {
	return k.isLost(charged, by) || slices.ContainsFunc(k.Deeds, func(d Deed) bool {
		return d.Kind == Reset && d.Zone == k.zone && d.Key == k.key && charged <= d.Ended && by >= d.Began
	})
}

// isLost reports whether Redis has lost by a time what it had charged at another.
func (h *History) isLost(charged, by time.Duration) bool {
	return slices.ContainsFunc(h.Losses, func(l Loss) bool {
		return charged >= l.From-time.Microsecond && charged <= l.To && by > l.To-time.Microsecond
	})
}
