package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

var _ = promise("an instance drops a demoted master", (*History).stays)

// stays checks that one answer of a server that has become a replica is enough for an instance to leave it, with all of
// its connections.
func (h *History) stays() (violations []string) {
	if h.Plan.has(unable) || h.Plan.Layout != Single {
		return nil // the server itself is a replica, for a while, or others say that it is the master
	}
	for i := range h.Answers {
		b := &h.Answers[i]
		leaves := leavesFor
		if h.demotions(0, b.Ended) > 1 {
			leaves += leavesAgain
		}
		knows := slices.ContainsFunc(h.Answers, func(a Answer) bool {
			return a.Instance == b.Instance && a.Failure == store.FailureReadonly && a.Ended < b.Began-leaves && h.demotions(a.Ended-leaves, b.Ended) == 0
		})
		if b.Failure == store.FailureReadonly && knows {
			violations = append(violations, fmt.Sprintf("client %d asks a server that is no master, which instance %d has been told before", b.Event, b.Instance))
		}
	}
	return violations
}

// leavesFor is how long an instance may need for that: it makes a connection. For leavesAgain since it left one, it
// stays with the next one, because a server that stays a replica would have each call make a connection.
const (
	leavesFor   = timeout
	leavesAgain = 100 * time.Millisecond
)

// demotions counts how often the master became a replica between two times.
func (h *History) demotions(from, to time.Duration) (n int) {
	for _, e := range h.Plan.Events {
		if e.Kind == Demote && h.began+e.At >= from && h.began+e.At <= to {
			n++
		}
	}
	return n
}
