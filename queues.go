package caddyratelimit

import (
	"fmt"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/limit"
)

// checkQueues refuses zones that would lose turns in a Cluster. Queues with different keys
// are on different nodes there, and one node charges after the other. If the last one
// refuses, the turn in the first cannot be given back once somebody stands behind it.
func (h *Handler) checkQueues(backend store.Backend) error {
	if p, ok := backend.(store.Partitioned); !ok || !p.Partitioned() {
		return nil
	}
	var first *zone.Zone
	for _, z := range h.zones {
		if z.DryRun || !slices.ContainsFunc(z.Limits(), func(l *limit.Limit) bool { return l.Mode == algorithms.ModeQueue }) {
			continue
		}
		switch {
		case first == nil:
			first = z
		case first.Key != z.Key || first.Template.Prefixes != z.Template.Prefixes:
			return fmt.Errorf("zones %q and %q: two queues with different keys do not go together in mode cluster, "+
				"where a turn in the one is lost if the other refuses: give both one key, or write them in two rate_limit handlers",
				first.Name, z.Name)
		}
	}
	return nil
}
