package world

import "fmt"

var _ = promiseOfKeys("enforce chooses the same keys everywhere", (*key).enforced)

// enforced checks that the limit holds for all requests of a key, or for none, at all instances and in all generations
// of their configs.
func (k *key) enforced() []string {
	var first *Verdict
	tried := false
	for i := range k.Verdicts {
		v := &k.Verdicts[i]
		for _, p := range v.Parts {
			if p.Zone != k.zone || p.Key != k.key || k.Enforced == 0 {
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
