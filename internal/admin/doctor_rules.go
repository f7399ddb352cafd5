package admin

import (
	"context"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/doctor"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// maxOverruled is how many overrides of a zone doctor looks at.
const maxOverruled = 1000

// overruled collects overrides of the zone. It is nil if the store does not tell.
func (z *runningZone) overruled(ctx context.Context) (rules []doctor.Rule) {
	var listed []store.Listed
	if err := withStoreIn(ctx, z.store, func(ctx context.Context, s store.Store) (err error) {
		if lists, ok := s.(store.Overrider); ok && z.Overrides && len(z.Rules()) > 0 {
			listed, _, err = lists.Overrides(ctx, z.Rules()[0], "", maxOverruled)
		}
		return err
	}); err != nil {
		return nil
	}
	for i := range listed {
		o := &listed[i].Override
		r := doctor.Rule{Ban: o.Kind == store.KindBanned, Ends: o.For > 0, Note: o.Note}
		if !o.Since.IsZero() {
			r.Age = max(0, time.Since(o.Since))
		}
		if o.Kind == store.KindLimit && z.Policy != nil { // with plans, it is not known which limit the key has else
			own := z.Policy.Rule.Limit()
			r.Same = o.Limit.Over(own) == own
		}
		rules = append(rules, r)
	}
	return rules
}
