package world

import (
	"fmt"

	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

var _ = promise("a limit that has expired refuses nobody", (*History).expired)

// expired checks that requests do not meet a limit that has expired, or only as a dry run.
func (h *History) expired() (violations []string) {
	for i := range h.Verdicts {
		v := &h.Verdicts[i]
		for _, p := range v.Parts {
			if z := &h.Plan.Zones[p.Zone]; z.over(v.Began) && (z.Then == zone.ThenIgnore || !p.DryRun) {
				violations = append(violations, fmt.Sprintf("client %d meets zone %d at %v, which has expired at %v", v.Event, p.Zone, v.Began, z.Ends))
			}
		}
	}
	return violations
}

var _ = promiseOfKeys("enforce chooses the same keys everywhere", (*key).enforced)

// enforced checks that the limit holds for all requests of a key, or for none, at all instances and in all generations
// of their configs.
func (k *key) enforced() []string {
	var first *Verdict
	tried := false
	for i := range k.Verdicts {
		v := &k.Verdicts[i]
		for _, p := range v.Parts {
			if p.Zone != k.zone || p.Key != k.key || k.Enforced == 0 || k.Then != "" && v.Ended >= k.Ends {
				continue
			}
			if first != nil && tried != p.DryRun {
				return []string{fmt.Sprintf("for client %d zone %d, key %d is a dry run: %v, and not so for client %d", v.Event, k.zone, k.key, p.DryRun, first.Event)}
			}
			first, tried = v, p.DryRun
		}
	}
	return nil
}
