package link

import (
	"context"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// AskMigrating asks about a key whose slot migrates, so that what it has beside its state may be at another node: see
// migrating.go. While an override or a ban holds, nothing is lent.
func (l *Link) AskMigrating(ctx context.Context, a *Ask) error {
	op := l.op(a.Check, protocol.Peek, "", 0)
	rules := op.KeyRules
	override, now, err := l.readOverride(ctx, rules, &op)
	if err != nil {
		return err
	}
	left := int64(0)
	switch {
	case override != nil && override.Kind == store.KindBanned:
		if left = override.For.Microseconds(); left == 0 {
			left = -1
		}
	case rules.Ban != nil && (override == nil || override.Kind != store.KindExempt):
		if left, err = l.evalBan(ctx, rules, 0); err != nil {
			return err
		}
	}
	exempt := override != nil && override.Kind == store.KindExempt
	encoded := useOverride(&op, override)
	elsewhere := encoded != "" && override.States(a.Rule.States()) != a.Rule.States()

	report := *a.Check
	report.KeyRules = nil
	lent := l.lendOp(&Ask{Check: &report, Ask: a.Ask, Peek: a.Peek})
	if exempt || left != 0 || encoded != "" {
		lent.Ask.Want, lent.Ask.Borrows = 0, false
	}
	if exempt || left != 0 || elsewhere {
		lent.Ask.Cost = 0
	} else if encoded != "" {
		lent.Prepared = op.Prepared
	}
	r := &node.Request{Lend: []protocol.LendOp{lent}}
	if l.makeLendCall(ctx, []*node.Request{r}); r.Err != nil {
		return r.Err
	}
	a.LendAnswer = r.Answers[0]
	a.Overruled = exempt || left != 0 || encoded != ""
	switch d := &a.LendAnswer.Decision; {
	case exempt:
		*d = algorithms.Decision{Allowed: true, Exempt: true, At: now}
	case elsewhere: // its state is not lent, so any call decides
		var decided [1]algorithms.Decision
		if err := l.TakeMigrating(ctx, []store.Check{*a.Check}, decided[:], false); err != nil {
			return err
		}
		*d = decided[0]
	case left != 0:
		*d = d.Ban(left)
	default:
		if d.Override = encoded; !d.Allowed && rules.Ban != nil && !a.Peek && (a.Final || !a.Own) {
			if left, err = l.evalBan(ctx, rules, 1); err == nil && left > 0 {
				*d = d.Ban(left)
				d.BanBegins = true
			}
		}
	}
	return nil
}
