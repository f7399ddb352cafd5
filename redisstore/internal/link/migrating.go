package link

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/lua"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// While a slot migrates from one node to another, its keys may be at either, and no
// call can have two of them. So each key is asked by itself: what is above a limit
// first, and then the state, by what that says. This takes several calls and not one
// instant: an override or a ban that changes between them holds from the next request on.

// Migrating reports whether a call has failed because its slot migrates, so that it may have only one key.
func Migrating(err error) bool { return redis.IsTryAgainError(err) }

// sendKey decides a request of one check, and what is beside its state.
func (l *Link) sendKey(ctx context.Context, r *node.Request) error {
	op, d := &r.Ops[0], &r.Decisions[0]
	rules := op.KeyRules
	op.KeyRules = nil
	override, now, err := l.readOverride(ctx, rules, op)
	if err != nil {
		return err
	}
	if override != nil && override.Kind == store.KindExempt {
		*d = algorithms.Decision{Allowed: true, Exempt: true, At: now}
		return nil
	}
	encoded := useOverride(op, override)
	left := int64(0)
	if override != nil && override.Kind == store.KindBanned {
		left = override.For.Microseconds()
		if left == 0 {
			left = -1
		}
	} else if rules.Ban != nil {
		if left, err = l.evalBan(ctx, rules, 0); err != nil {
			return err
		}
	}
	if left != 0 {
		op.Cost = 0 // a key that is banned is not charged
	}
	if left != 0 || encoded != "" {
		op.Ahead = 0
	}
	if err = l.send(ctx, r); err != nil {
		return err
	}
	d.Override = encoded
	if left == 0 && !d.Allowed && rules.Ban != nil && op.Kind != protocol.Peek {
		left, err = l.evalBan(ctx, rules, 1)
		d.BanBegins = left > 0 && err == nil
	}
	if left != 0 {
		*d = d.Ban(left)
	}
	return nil
}

// useOverride makes an operation count under the limit of an override, if it has one, and returns
// that limit for Decision.Override.
func useOverride(op *protocol.Op, override *store.PreparedOverride) (encoded string) {
	if !override.ReplacesLimit(op.Rule) {
		return ""
	}
	op.Prepared = override.Prepared(op.Prepared)
	op.Key = strings.TrimSuffix(op.Key, op.Rule.ID()) + override.States(op.Rule.States()).ID
	return override.Encoded()
}

// readOverride returns the override of a key, or nil, and the time.
func (l *Link) readOverride(ctx context.Context, rules *protocol.KeyRules, op *protocol.Op) (*store.PreparedOverride, int64, error) {
	if rules.Override == "" {
		return nil, 0, nil
	}
	text, err := l.EvalText(ctx, Server.ProcessIfReady, lua.Get.Text(), rules.Override)
	if err != nil {
		return nil, 0, err
	}
	now, text, err := Number(text)
	if err != nil {
		return nil, 0, err
	}
	override, err := store.ParseOverride(text, now)
	if err != nil || override.Kind == store.KindNone {
		return nil, now, nil // a damaged override is ignored
	}
	left := override.For // it may be less than MinOverride, which PrepareOverride would reject
	override.For = 0
	prepared, err := op.Rule.PrepareOverride(override)
	if err != nil {
		return nil, now, nil
	}
	prepared.For = left
	return prepared, now, nil
}

// evalBan counts 0 or 1 refusals, and returns the rest of a ban.
func (l *Link) evalBan(ctx context.Context, rules *protocol.KeyRules, refusals int) (int64, error) {
	var args []any
	for _, p := range rules.Ban.Params() {
		args = append(args, p)
	}
	text, err := l.EvalText(ctx, Server.ProcessIfReady, lua.Banned.Text(), rules.BanState, append(args, refusals)...)
	if err != nil {
		return 0, err
	}
	left, _, err := Number(text)
	return left, err
}
