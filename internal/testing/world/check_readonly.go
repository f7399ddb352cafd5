package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

var _ = promise("an instance leaves a master that is one no longer", (*History).stays)

// stays checks that one answer of a server that has become a replica is enough for an instance to leave it, with all of
// its connections.
func (h *History) stays() (violations []string) {
	if h.Plan.has(unable) || h.Plan.Layout != Single {
		return nil // the server itself is a replica, for a while, or others say that it is the master
	}
	for i := range h.Answers {
		b := &h.Answers[i]
		knows := slices.ContainsFunc(h.Answers, func(a Answer) bool {
			return a.Instance == b.Instance && a.Failure == store.FailureReadonly && a.Ended < b.Began-leavesFor && !h.demoted(a.Ended-leavesFor, b.Ended)
		})
		if b.Failure == store.FailureReadonly && knows {
			violations = append(violations, fmt.Sprintf("client %d asks a server that is no master, which instance %d has been told before", b.Event, b.Instance))
		}
	}
	return violations
}

// leavesFor is how long an instance may need for that: it makes a connection.
const leavesFor = timeout

// demoted reports whether the master became a replica between two times.
func (h *History) demoted(from, to time.Duration) bool {
	return slices.ContainsFunc(h.Plan.Events, func(e Event) bool {
		return e.Kind == Demote && h.began+e.At >= from && h.began+e.At <= to
	})
}
