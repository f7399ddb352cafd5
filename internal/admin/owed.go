package admin

import (
	"context"
	"math"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// owes finds out how much more the key has used than its limit allows. A decision does not say so. But limits
// of one family share their state, so the decision under a larger one does.
func (p *peek) owes(ctx context.Context, s store.Store) error {
	d := &p.decision
	if d.Remaining > 0 || d.Quota == 0 || d.Exempt || config.CountsSlots(p.rule.Algorithm().Name()) {
		return nil
	}
	own := p.rule.Limit()
	if d.Override != "" {
		own = p.stored.Limit.Over(own)
	}
	larger, err := store.NewRule(p.rule.Zone(), p.rule.Algorithm(), raised(p.rule.Algorithm().Name(), own), p.rule.Salt())
	if err != nil || larger.ID() != p.rule.ID() && d.Override == "" {
		return nil // no limit is larger
	}
	under, err := takeOne(ctx, s, store.Check{Rule: larger, Key: p.key, Peek: true})
	p.owed = max(0, under.Quota-under.Remaining-d.Quota)
	return err
}

// raised returns the limit of the same family that is above all debts.
func raised(algorithm string, l algorithms.Limit) algorithms.Limit {
	switch algorithm {
	case "token_bucket", "leaky_bucket", "gcra":
		// A debt is at most what comes back in a day.
		const longest = 2 * 24 * time.Hour
		debt := int64(math.Min(float64(l.Events)*float64(longest)/float64(l.Window), float64(algorithms.MaxEvents)))
		most := int64(math.Min(float64(l.Events)*(float64(algorithms.MaxWindow)/float64(l.Window)), float64(algorithms.MaxEvents)))
		l.Burst = min(max(l.Burst, l.Events)+debt+1, most)
	case "sliding_window_log":
		l.Events = algorithms.MaxLogEvents // above which a debt does not show
	default:
		l.Events = algorithms.MaxEvents
	}
	return l
}
