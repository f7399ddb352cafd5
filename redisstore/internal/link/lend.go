package link

import (
	"context"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/outbox"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// MaxPerCall bounds the keys of one call that no request waits for.
const MaxPerCall = 32

// Ask is what is asked about one key of a zone that lends, and the answer.
type Ask struct {
	*store.Check
	lend.Ask
	Peek  bool // nothing is asked but how the key is
	Final bool // its request does not ask again, so a ban counts each refusal: see [lend.Answer]

	protocol.LendAnswer
	Err error
}

// op makes an ask ready for the script.
func (l *Link) lendOp(a *Ask) protocol.LendOp {
	op := protocol.LendOp{Rule: a.Rule, Prepared: l.Today.At(a.Rule), Key: l.Keys.State(a.Rule.ID(), a.Key), Ask: a.Ask, Peek: a.Peek, Final: a.Final}
	if a.KeyRules != nil {
		op.KeyRules = l.keyRules(a.Check)
	}
	return op
}

// inLentState reports whether an adjustment is of a state of which parts may be lent: not if the limit of an
// override has decided that counts elsewhere.
func (l *Link) inLentState(a *store.Adjustment) bool {
	if !a.Rule.LendsParts() || a.Override == "" {
		return a.Rule.LendsParts()
	}
	_, states := a.Rule.ChargedBy(a.Override, l.Today.Of(a.Rule))
	return states == a.Rule.States()
}

// adjustLentOp makes an adjustment ready for the script.
func (l *Link) adjustLentOp(a *store.Adjustment) protocol.LendOp {
	op := l.lendOp(&Ask{Check: &store.Check{Rule: a.Rule, Key: a.Key, Cost: a.Cost}})
	op.Adjustment = a
	if a.Override != "" {
		op.Prepared, _ = a.Rule.ChargedBy(a.Override, l.Today.Of(a.Rule))
	}
	return op
}

// AskTogether has asks about different keys decided together, for a request. It shares the call with other
// requests.
func (l *Link) AskTogether(ctx context.Context, asks []*Ask) error {
	r := l.newRequest()
	for _, a := range asks {
		r.Lend = append(r.Lend, l.lendOp(a))
	}
	r.Slot = l.Servers.Slot(r.Lend[0].Key)
	if err := l.askInCall(ctx, r); err != nil {
		return err // it may be under way still, so it is not used again
	}
	for i := range asks {
		asks[i].LendAnswer = r.Answers[i]
	}
	l.free(r)
	return nil
}

// askInCall has a request answered in a call with others, but in a Cluster in one of its own.
func (l *Link) askInCall(ctx context.Context, r *node.Request) (err error) {
	if l.PerCall == 1 {
		l.makeLendCall(ctx, []*node.Request{r})
		return r.Err
	}
	if err = l.send(ctx, r); err == nil {
		l.noteDamaged(r)
	}
	return err
}

// AskEach has asks decided one after the other. No request waits for them.
func (l *Link) AskEach(ctx context.Context, asks []*Ask) {
	for some := range slices.Chunk(asks, l.PerCall) {
		requests := make([]*node.Request, len(some))
		for i, a := range some {
			requests[i] = &node.Request{Lend: []protocol.LendOp{l.lendOp(a)}}
		}
		l.makeLendCall(ctx, requests)
		for i, a := range some {
			switch a.Err = requests[i].Err; {
			case a.Err == nil:
				a.LendAnswer = requests[i].Answers[0]
			case Migrating(a.Err) && a.KeyRules != nil:
				a.Err = l.AskMigrating(ctx, a)
			}
		}
	}
}

// noteDamaged warns of states that were damaged.
func (l *Link) noteDamaged(r *node.Request) {
	for i := range r.Answers {
		if r.Answers[i].Damaged {
			l.warnDamaged(r.Lend[i].Rule.Zone())
		}
	}
}

// makeLendCall makes one call for several requests, which are decided one after the other.
func (l *Link) makeLendCall(ctx context.Context, batch []*node.Request) {
	err := l.failed(l.follow(ctx, l.Servers.Slot(batch[0].Lend[0].Key), func(s Server, asking bool) error { return s.LendIfReady(ctx, batch, asking) }))
	for _, r := range batch {
		if err != nil {
			r.Err = err
		} else {
			l.noteDamaged(r)
		}
	}
}

// sendLent carries out adjustments in zones that lend, as sendAdjustments does others: in one call, but in a
// Cluster.
func (l *Link) sendLent(ctx context.Context, batch []outbox.Adjustment) (again []outbox.Adjustment, failed int) {
	requests := make([]*node.Request, len(batch))
	for i := range batch {
		if batch[i].Sending != nil {
			batch[i].Sending(ctx)
		}
		requests[i] = &node.Request{Lend: []protocol.LendOp{l.adjustLentOp(&batch[i].Adjustment.Adjustment)}}
	}
	for some := range slices.Chunk(requests, l.PerCall) {
		l.makeLendCall(ctx, some)
	}
	for i, r := range requests {
		if sent := batch[i].Sent; sent != nil {
			sent(r.Err == nil && r.Answers[0].Remaining > 0, r.Err)
		}
		switch done := batch[i].Done; {
		case r.Err == nil:
			if done != nil {
				done(r.Answers[0].Quota > 0)
			}
			continue
		case node.MayHaveRun(r.Err):
			l.Outbox.Drop(r.Err, batch[i])
		default:
			again = append(again, batch[i])
		}
		failed++
	}
	return again, failed
}
