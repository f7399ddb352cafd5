package world

import (
	"fmt"
)

var _ = promise("a request costs what its body says", (*History).bodies)

// bodies checks what is decided about requests whose bodies say what they cost. One that cannot be read passes no limit
// that always holds.
func (h *History) bodies() (violations []string) {
	for i := range h.Verdicts {
		v := &h.Verdicts[i]
		e := &h.Plan.Events[v.Event]
		if e.Kind != Request {
			continue
		}
		for _, p := range v.Parts {
			z := &h.Plan.Zones[p.Zone]
			if want, decides := z.asked(e); z.Asks && (!decides || p.Cost != want) {
				violations = append(violations, fmt.Sprintf("client %d costs %d in zone %d, should be %d", v.Event, p.Cost, p.Zone, want))
			}
		}
		for i := range h.Plan.Zones {
			z := &h.Plan.Zones[i]
			if meets := e.Zone < 0 || e.Zone == i; meets && z.Asks && e.Sort == garbled && !z.refusesSome() && v.Passes {
				violations = append(violations, fmt.Sprintf("client %d passes zone %d with a body that cannot be read", v.Event, i))
			}
		}
	}
	return violations
}
