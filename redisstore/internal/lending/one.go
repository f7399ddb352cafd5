package lending

import (
	"context"
	"errors"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// This is the way of a request that meets one zone, which lends: that of most requests. If the key comes
// rarely, the request goes the way of a zone that does not lend. If this process holds enough, it
// is spent. Only otherwise anything is put together for an ask.

// decideOne decides a check of a zone that lends, which is alone in its request.
func (l *Layer) decideOne(ctx context.Context, checks []store.Check, decisions []algorithms.Decision, now lend.Moment) error {
	c := &checks[0]
	e, lent := l.Loans.Find(c.Rule, c.Key, c.Cost, now)
	switch {
	case e != nil && e.SpendNow(now, c.Cost, &decisions[0]):
		l.Spared.Add(1)
		return nil
	case e == nil && !lent:
		err := l.Layer.Take(ctx, checks, decisions)
		if err == nil {
			l.noteCharged(c, &decisions[0])
			return nil
		}
		if !errors.Is(err, protocol.ErrLent) {
			return err
		}
		e = l.Loans.FindLent(c.Rule, c.Key, c.Cost, l.Loans.Now())
	}
	r := lentRequest{checks: checks, decisions: decisions}
	r.together = append(r.room[:0], lentCheck{Check: c, entry: e})
	_, err := l.decideTogether(ctx, &r)
	if err == nil && !r.asked {
		l.Spared.Add(1)
	}
	return err
}
