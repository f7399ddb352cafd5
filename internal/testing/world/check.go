package world

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/model"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Check returns what must not have happened, or nothing.
func Check(h *History) (violations []string) {
	violations = slices.Clone(h.Wrong)
	for zone := range h.Plan.Zones {
		for key := range maxKeys {
			k := h.key(zone, key)
			switch {
			case k.Algorithm == "concurrency":
				violations = append(violations, k.tooManySlots()...)
			case k.Lend == 0:
				violations = append(violations, k.aboveLimit()...)
			}
			violations = append(violations, k.withoutCause()...)
			violations = append(violations, k.atRest()...)
		}
	}
	return append(violations, h.failures()...)
}

func (h *History) event(a *Answer) *Event { return &h.Plan.Events[a.Event] }

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
		switch e := h.event(a); {
		case e.Zone != zone || e.Key != number || e.Cost == 0:
		case a.Failure != "":
			k.unknown = append(k.unknown, a)
		case a.Decision.Allowed:
			k.admitted = append(k.admitted, a)
			k.late += max(0, e.Delta)
		default:
			k.refused = append(k.refused, a)
		}
	}
	slices.SortStableFunc(k.admitted, func(a, b *Answer) int { return cmp.Compare(k.when(a), k.when(b)) })
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

// lost reports whether Redis has lost by a time what it had charged at another.
func (h *History) isLost(charged, by time.Duration) bool {
	return slices.ContainsFunc(h.Losses, func(l Loss) bool {
		return charged >= l.From-time.Microsecond && charged <= l.To && by > l.To-time.Microsecond
	})
}

// aboveLimit checks that what a key was admitted is within its limit. The model is charged what was admitted, and
// nothing else: what a call without an answer has charged can only leave less. What is given back is given back when
// the client has said so.
func (k *key) aboveLimit() (violations []string) {
	back := slices.ContainsFunc(k.Plan.Events, func(e Event) bool { return e.Kind == Step && e.After < 0 })
	if back || k.anchored() && k.Plan.doubtful() {
		return nil // a window begins at another time, and depends on when something is given back
	}
	m := model.New(k.Algorithm)
	var charged []*Answer
	for _, a := range k.admitted {
		left := slices.DeleteFunc(slices.Clone(charged), func(b *Answer) bool { return k.isLost(k.when(b), k.when(a)) })
		if len(left) < len(charged) {
			m = model.New(k.Algorithm)
			for i, b := range left {
				k.charge(m, left[:i], b)
			}
			charged = left
		}
		if !k.charge(m, charged, a) {
			violations = append(violations, fmt.Sprintf("client %d was admitted above the limit of zone %d, key %d", a.Event, k.zone, k.key))
		}
		charged = append(charged, a)
	}
	return violations
}

// anchored reports whether a window begins with a charge.
func (z *Zone) anchored() bool {
	return z.Limit.Refill == algorithms.RefillInterval || z.Limit.Align == algorithms.AlignFirstRequest
}

// charge has the model give back what was given back since the last of what was charged, and charges more. It reports
// whether that fits. What is given back of a charge that was lost is given back of others.
func (k *key) charge(m *model.Key, charged []*Answer, a *Answer) bool {
	since := time.Duration(0)
	if len(charged) > 0 {
		since = k.when(charged[len(charged)-1])
	}
	now := k.when(a)
	back := slices.DeleteFunc(slices.Clone(k.admitted), func(b *Answer) bool { return k.event(b).Delta >= 0 || b.Adjusted <= since || b.Adjusted > now })
	slices.SortFunc(back, func(a, b *Answer) int { return cmp.Compare(a.Adjusted, b.Adjusted) })
	for _, b := range back {
		m.Adjust(k.Limit, a.Decision.At-(now-b.Adjusted).Microseconds(), b.Decision.Booked(), k.event(b).Delta, fmt.Sprint(b.Event))
	}
	return m.Admit(k.Limit, a.Decision.At, k.event(a).Cost, fmt.Sprint(a.Event))
}

// tooManySlots checks that no more slots were taken at once than there are.
func (k *key) tooManySlots() (violations []string) {
	if len(k.clocks) > 1 {
		return nil // leases end early if the clock steps forth
	}
	for _, a := range k.admitted {
		taken := int64(0)
		for _, b := range k.admitted {
			if k.when(b) <= k.when(a) && (b.Adjusted == 0 || b.Adjusted > k.when(a)) && !k.isLost(k.when(b), k.when(a)) {
				taken += k.event(b).Cost
			}
		}
		if taken > k.Limit.Events {
			violations = append(violations, fmt.Sprintf("client %d has a slot of zone %d, key %d, of which %d are taken then", a.Event, k.zone, k.key, taken))
		}
	}
	return violations
}

// withoutCause checks that nothing is refused for which there is room for sure: if all was charged that can have
// been, and none of it has come back.
func (k *key) withoutCause() (violations []string) {
	if k.Lend > 0 && k.Plan.Instances > 1 {
		return nil // what others hold is used
	}
	for _, a := range k.refused {
		most := k.late
		for _, b := range slices.Concat(k.admitted, k.unknown) {
			if b.Began <= a.Ended {
				most += k.event(b).Cost
			}
		}
		if most+k.event(a).Cost <= a.Decision.Quota && a.Decision.Quota == k.Limit.Events {
			violations = append(violations, fmt.Sprintf("client %d was refused by zone %d, key %d, without a cause: %d of %d can be used", a.Event, k.zone, k.key, most, a.Decision.Quota))
		}
	}
	return violations
}

// atRest checks what is left of a key of which nothing has come back: what was charged is what was admitted, with
// all that was adjusted once. What was in doubt may have been charged or not.
func (k *key) atRest() []string {
	slots := k.Algorithm == "concurrency"
	if !slots && k.Limit.Window < time.Hour || len(k.Losses) > 0 || len(k.clocks) > 1 {
		return nil
	}
	least, most := int64(0), int64(0)
	for _, a := range k.unknown {
		most += k.event(a).Cost
	}
	doubtful := k.Plan.doubtful()
	for _, a := range k.admitted {
		e := k.event(a)
		least, most = least+e.Cost, most+e.Cost
		if a.Adjusted != 0 && (e.Delta < 0 || !doubtful) {
			least += e.Delta
		}
		if a.Adjusted != 0 && (e.Delta > 0 || !doubtful) {
			most += e.Delta
		}
	}
	if slots {
		least, most = 0, 0
	}
	if k.Algorithm == "token_bucket" || k.Algorithm == "leaky_bucket" {
		least -= 1 + 30*k.Limit.Events/3600 // what has come back in half a minute
	}
	left := k.left()
	if used := left.Quota - left.Remaining; used > most || used < min(least, left.Quota) {
		return []string{fmt.Sprintf("%d of zone %d, key %d are used at rest, which should be from %d to %d", used, k.zone, k.key, least, most)}
	}
	return nil
}

func (k *key) left() *Left {
	return &k.Left[slices.IndexFunc(k.Left, func(l Left) bool { return l.Zone == k.zone && l.Key == k.key })]
}

// has reports whether a plan has troubles of some kinds.
func (p *Plan) has(kinds ...Kind) bool {
	return slices.ContainsFunc(p.Events, func(e Event) bool { return slices.Contains(kinds, e.Kind) })
}

// doubtful reports whether it can be unknown if something was carried out. A script that meets a right that is missing
// may have written before.
func (p *Plan) doubtful() bool { return p.has(unreliable...) || p.has(outages...) || p.has(Forbid) }

// tells are the kinds of failures that a trouble may lead to.
var tells = map[Kind][]string{
	LoseRequests: {store.FailureNetwork, store.FailureTimeout, store.FailureOpen},
	LoseReplies:  {store.FailureNetwork, store.FailureTimeout, store.FailureOpen},
	Delay:        {store.FailureTimeout, store.FailureOpen},
	Freeze:       {store.FailureTimeout, store.FailureOpen},
	Restart:      {store.FailureNetwork, store.FailureRefused, store.FailureTimeout, store.FailureOpen},
	Failover:     {store.FailureNetwork, store.FailureRefused, store.FailureTimeout, store.FailureOpen},
	Demote:       {store.FailureReadonly}, // the connections to the old master, one after the other
	Full:         {store.FailureOOM},
	Readonly:     {store.FailureReadonly},
	NoReplicas:   {store.FailureOther},
	Unsaved:      {store.FailureOther},
	Forbid:       {store.FailureAuth, store.FailureOpen},
}

// failures checks that each failure is one of a trouble that there was by then.
func (h *History) failures() (violations []string) {
	for i := range h.Answers {
		a := &h.Answers[i]
		told := slices.ContainsFunc(h.Plan.Events, func(e Event) bool {
			return e.Kind != Take && h.began+e.At <= a.Ended && slices.Contains(tells[e.Kind], a.Failure)
		})
		if a.Failure != "" && !told {
			violations = append(violations, fmt.Sprintf("client %d fails at %v with %s, which no trouble explains: %s", a.Event, a.Ended, a.Failure, a.Err))
		}
	}
	return violations
}
