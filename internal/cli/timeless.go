package cli

import (
	"cmp"
	"encoding/json"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// This file compares what instances of a fleet say of a key.

// timeless returns what instances must agree on, of what they say of a key: all but times, since they are not asked
// at the same moment, and their own counts.
func timeless(k adminapi.Key) string {
	k.Lately = nil
	k.QuotaStatus = withoutTimes(k.QuotaStatus)
	plans := k.Plans
	k.Plans = nil
	for _, plan := range plans {
		plan.QuotaStatus = withoutTimes(plan.QuotaStatus)
		k.Plans = append(k.Plans, plan)
	}
	if k.Ban != nil {
		k.Ban = &adminapi.Ban{By: k.Ban.By}
	}
	if k.Refusals != nil {
		refusals := *k.Refusals
		refusals.EndsIn = 0
		k.Refusals = &refusals
	}
	if k.Override != nil {
		override := *k.Override
		override.EndsIn = 0
		k.Override = &override
	}
	text, _ := json.Marshal(k) // cannot fail: there are only numbers and texts
	return string(text)
}

func withoutTimes(q adminapi.QuotaStatus) adminapi.QuotaStatus {
	q.RetryAfter, q.NextAfter, q.ResetAfter = 0, 0, 0
	return q
}

// addLately adds the recent counts of a key on another instance.
func addLately(to, key *adminapi.Key) {
	if to.Lately == nil || key.Lately == nil {
		to.Lately = cmp.Or(to.Lately, key.Lately)
		return
	}
	sum := *to.Lately
	if key.Lately.Since.Before(sum.Since) {
		sum.Since = key.Lately.Since
	}
	sum.Plan = cmp.Or(sum.Plan, key.Lately.Plan)
	sum.Requests += key.Lately.Requests
	sum.Refused += key.Lately.Refused
	sum.DryRun += key.Lately.DryRun
	to.Lately = &sum
}
