package world

import (
	"fmt"
	"slices"
)

var _ = promise("no request fails without a trouble", (*History).failures)

// failures checks that each failure is one of a trouble that there was by then.
func (h *History) failures() (violations []string) {
	for i := range h.Answers {
		a := &h.Answers[i]
		told := slices.ContainsFunc(h.Plan.Events, func(e Event) bool {
			return h.began+e.At <= a.Ended && slices.Contains(operations[e.Kind].tells, a.Failure)
		})
		if a.Failure != "" && a.Failure != killed && !told {
			violations = append(violations, fmt.Sprintf("client %d fails at %v with %s, which no trouble explains: %s", a.Event, a.Ended, a.Failure, a.Err))
		}
	}
	return violations
}
