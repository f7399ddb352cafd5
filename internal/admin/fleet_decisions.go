package admin

import (
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

// reports are when the last report was written of each instance whose decisions were taken.
type reports map[string]time.Time

// fresh returns the decisions that somebody wants of reports that were not taken before. So each is returned once.
func (r reports) fresh(view *fleet.View, wants func(zone, key string, o outcome.Outcome) bool) (fresh []adminapi.Decision) {
	for _, m := range view.Members[1:] {
		if m.Report == nil || m.Report.Now.Equal(r[m.ID]) {
			continue
		}
		r[m.ID] = m.Report.Now
		for _, d := range m.Report.Decisions {
			if wantsDecision(&d, wants) {
				d.Instance = m.Name
				fresh = append(fresh, d)
			}
		}
	}
	return fresh
}

// wantsDecision reports whether somebody wants a decision of another instance.
func wantsDecision(d *adminapi.Decision, wants func(zone, key string, o outcome.Outcome) bool) bool {
	key, err := d.Bytes()
	o := slices.Index(outcome.Names[:], d.Outcome)
	return err == nil && o >= 0 && wants(d.Zone, key, outcome.Outcome(o))
}
