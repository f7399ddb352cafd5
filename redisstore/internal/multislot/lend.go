package multislot

import (
	"context"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
)

// Lender asks a Cluster for loans.
type Lender struct{ *link.Link }

// AskTogether is that of the link, also while the slot of a key migrates.
func (l Lender) AskTogether(ctx context.Context, asks []*link.Ask) error {
	err := l.Link.AskTogether(ctx, asks)
	if err != nil && link.Migrating(err) && len(asks) == 1 && asks[0].KeyRules != nil {
		return l.AskMigrating(ctx, asks[0])
	}
	return err
}
