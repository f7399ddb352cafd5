package world

import "slices"

// promised is something that holds in every world. Its name is in TRACK-RECORD.md.
type promised struct {
	name   string
	broken func(h *History) []string // says where it does not hold
}

var promises []promised

// promise adds a promise.
func promise(name string, broken func(h *History) []string) string {
	promises = append(promises, promised{name, broken})
	return name
}

// promiseOfKeys adds a promise that holds for each key of each zone.
func promiseOfKeys(name string, broken func(k *key) []string) string {
	return promise(name, func(h *History) (violations []string) {
		for zone := range h.Plan.Zones {
			for number := range h.Plan.keys() {
				violations = append(violations, broken(h.key(zone, number))...)
			}
		}
		return violations
	})
}

// Check returns what must not have happened, or nothing.
func Check(h *History) (violations []string) {
	violations = slices.Clone(h.Wrong)
	for _, p := range promises {
		for _, v := range p.broken(h) {
			violations = append(violations, p.name+": "+v)
		}
	}
	return violations
}
