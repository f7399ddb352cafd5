package world

import (
	"fmt"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/store"
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
	for _, d := range h.Deeds { // whose time runs also while their instance is busy
		told := slices.ContainsFunc(h.Plan.Events, func(e Event) bool {
			return h.began+e.At <= d.Ended && (slices.Contains(operations[e.Kind].tells, d.Failure) || (h.Plan.Work > 0 || e.Kind == Suspend || e.Kind == Busy) && d.Failure == store.FailureTimeout)
		})
		if d.Failure != "" && d.Failure != killed && !told {
			violations = append(violations, fmt.Sprintf("operator %d fails with %s, which no trouble explains: %s", d.Event, d.Failure, d.Err))
		}
	}
	return violations
}
