package world

import (
	"fmt"
	"slices"
	"time"
)

var _ = promise("no request fails without a trouble", (*History).failures)

// failures checks that each failure is one of a trouble that there was by then.
func (h *History) failures() (violations []string) {
	explained := func(failure string, by time.Duration) bool {
		return failure == "" || failure == killed || slices.ContainsFunc(h.Plan.Events, func(e Event) bool {
			return h.began+e.At <= by && slices.Contains(operations[e.Kind].tells, failure)
		})
	}
	for i := range h.Answers {
		if a := &h.Answers[i]; !explained(a.Failure, a.Ended) {
			violations = append(violations, fmt.Sprintf("client %d fails at %v with %s, which no trouble explains: %s", a.Event, a.Ended, a.Failure, a.Err))
		}
	}
	for _, d := range h.Deeds {
		if !explained(d.Failure, d.Ended) {
			violations = append(violations, fmt.Sprintf("operator %d fails with %s, which no trouble explains: %s", d.Event, d.Failure, d.Err))
		}
	}
	return violations
}
