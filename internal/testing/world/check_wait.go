package world

import (
	"fmt"
	"slices"
	"time"
)

var _ = promiseOfKeys("what is refused is told a wait after which it is admitted if nobody else comes", (*key).waits)

// waits checks clients that come back after the wait that they were told. Slots and bans have no such wait, and what is
// lent to others may be in use.
func (k *key) waits() (violations []string) {
	if k.slots() || k.BanAfter > 0 || k.Lend > 0 && k.Plan.Instances > 1 || k.Plan.troubled() || k.touched(Override, Clear, Unban, Reset) {
		return nil
	}
	for _, first := range k.refused {
		for _, second := range k.refused {
			if e := k.Plan.Events[first.Event]; !e.Returns || second.name() == first.name() || second.Event != first.Event || second.Client != first.Client || second.Began <= first.Ended {
				continue
			}
			others := slices.ContainsFunc(k.Answers, func(a Answer) bool {
				meanwhile := a.Ended >= first.Began && a.Began <= second.Ended || a.Adjusted > first.Began-time.Second && a.Adjusted <= second.Ended
				return a.Zone == k.zone && a.Key == k.key && (a.Charged || a.Failure != "") && meanwhile
			})
			if !others {
				violations = append(violations, fmt.Sprintf("client %d has waited for %v as zone %d, key %d, says, and is refused again", first.Event, first.Decision.RetryAfter, k.zone, k.key))
			}
		}
	}
	return violations
}

// troubled reports whether anything goes wrong.
func (p *Plan) troubled() bool {
	return slices.ContainsFunc(p.Events, func(e Event) bool { return operations[e.Kind].sort.trouble() })
}
