package admin

import (
	"context"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

// reportedDecisions sends the decisions that other instances report, each once, until the context is done. Without stores
// it returns nil.
func reportedDecisions(ctx context.Context, stores []*runningStore, wants func(zone, key string, o outcome.Outcome) bool) <-chan adminapi.Decision {
	if len(stores) == 0 {
		return nil
	}
	to := make(chan adminapi.Decision)
	seen := make(map[string]time.Time) // when the last report of an instance was written
	go follow(ctx, stores, func(view *fleet.View) {
		for _, m := range view.Members[1:] {
			if m.Report == nil || m.Report.Now.Equal(seen[m.ID]) {
				continue
			}
			seen[m.ID] = m.Report.Now
			for _, d := range m.Report.Decisions {
				if !wantsDecision(&d, wants) {
					continue
				}
				d.Instance = m.Name
				select {
				case to <- d:
				case <-ctx.Done():
					return
				}
			}
		}
	})
	return to
}

// wantsDecision reports whether somebody wants a decision of another instance.
func wantsDecision(d *adminapi.Decision, wants func(zone, key string, o outcome.Outcome) bool) bool {
	key, err := d.Bytes()
	for o, name := range outcome.Names {
		if name == d.Outcome {
			return err == nil && wants(d.Zone, key, outcome.Outcome(o))
		}
	}
	return false
}
