package world

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/model"
)

// Check returns what must not have happened, or nothing.
func Check(h *History) (violations []string) {
	byKey := make(map[[2]int][]*Answer)
	for i := range h.Answers {
		a := &h.Answers[i]
		if e := h.event(a); a.Failure == "" && a.Decision.Allowed && e.Cost > 0 {
			byKey[[2]int{e.Zone, e.Key}] = append(byKey[[2]int{e.Zone, e.Key}], a)
		}
	}
	for zone := range h.Plan.Zones {
		for key := range maxKeys {
			violations = append(violations, h.aboveLimit(zone, byKey[[2]int{zone, key}])...)
		}
	}
	return violations
}

func (h *History) event(a *Answer) *Event { return &h.Plan.Events[a.Event] }

// aboveLimit checks that what a key was admitted is within its limit. The model is charged what was admitted, and
// nothing else: what a call without an answer has charged can only leave less. What is given back is given back at
// once, because that leaves most.
func (h *History) aboveLimit(zone int, admitted []*Answer) (violations []string) {
	z := h.Plan.Zones[zone]
	slices.SortStableFunc(admitted, func(a, b *Answer) int { return cmp.Compare(a.Decision.At, b.Decision.At) })
	m := model.New(z.Algorithm)
	for _, a := range admitted {
		e, name := h.event(a), fmt.Sprint(a.Event)
		if !m.Admit(z.Limit, a.Decision.At, e.Cost, name) {
			violations = append(violations, fmt.Sprintf("client %d was admitted above the limit: %d of zone %d, key %d at %d", a.Event, e.Cost, zone, e.Key, a.Decision.At))
		} else if e.Delta < 0 {
			m.Adjust(z.Limit, a.Decision.At, a.Decision.Booked(), e.Delta, name)
		}
	}
	return violations
}
