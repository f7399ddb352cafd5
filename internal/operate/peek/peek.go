// Package peek looks up what a store has of a key, and says what a request with it would get. It charges nothing, and creates
// no state.
package peek

import (
	"context"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/why"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/request/key"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Look is a look at a key: what to look at, and what [Look.Ask] has found.
type Look struct {
	Rule  *store.Rule
	Rules *store.KeyRules // of the zone
	Of    store.Selector  // the key; of a network there is nothing but its override
	Cost  int64

	Override store.Override
	network  *store.Network      // that has the override, if the key has none
	Decision algorithms.Decision // of the limit, whatever is banned
	Ban      *adminapi.Ban
	Refusals *adminapi.Refusals // that lead to a ban; nil if none do
}

// Ask asks the store.
func (l *Look) Ask(ctx context.Context, s store.Store) (err error) {
	check := store.Check{Rule: l.Rule, Key: l.Of.Key, Cost: l.Cost, Peek: true}
	overrider, ok := s.(store.Overrider)
	if !ok || l.Rules == nil {
		l.Decision, err = One(ctx, s, check)
		return err
	}
	if l.Rules.Overrides || l.Of.IsNetwork() {
		if l.Override, err = overrider.GetRule(ctx, l.Rule, l.Of); err != nil || l.Of.IsNetwork() {
			return err
		}
	}
	check.KeyRules = &store.KeyRules{Overrides: l.Rules.Overrides && l.Override.Kind != store.KindBanned}
	if l.Decision, err = One(ctx, s, check); err != nil {
		return err
	}
	check.Cost, check.KeyRules = 0, l.Rules // which only a ban refuses
	banned, err := One(ctx, s, check)
	if err == nil && banned.Banned {
		if banned.RetryAfter == algorithms.Never {
			banned.RetryAfter = 0
		}
		l.banned(banned.RetryAfter)
	}
	if err != nil || l.Rules.Ban == nil {
		return err
	}
	r, err := overrider.Refusals(ctx, l.Rule, l.Rules.Ban, l.Of.Key)
	l.Refusals = &adminapi.Refusals{
		Count: r.Count, Of: l.Rules.Ban.After, Within: l.Rules.Ban.Within.Seconds(), NextBan: r.Next.Seconds(),
		Begins: !l.Decision.Allowed && l.Ban == nil && r.Count+1 >= l.Rules.Ban.After,
	}
	return err
}

// One asks the store for one check.
func One(ctx context.Context, s store.Store, c store.Check) (algorithms.Decision, error) {
	var d [1]algorithms.Decision
	err := s.Take(ctx, []store.Check{c}, d[:])
	return d[0], err
}

// banned notes that the key is banned for some time; 0 means without an end.
func (l *Look) banned(left time.Duration) {
	l.Ban = &adminapi.Ban{By: adminapi.ByRefusals}
	if l.Override.Kind == store.KindBanned {
		l.Ban.By = adminapi.ByOverride
	}
	if left > 0 {
		l.Ban.Until = why.At(left)
	}
}

// Punished reports whether the zone has banned the key, or counts refusals that lead to a ban.
func (l *Look) Punished() bool {
	return l.Ban != nil && l.Ban.By == adminapi.ByRefusals || l.Refusals != nil && l.Refusals.Count > 0
}

// Under has the override of a network decide, if the key has none.
func (l *Look) Under(all *store.Networks, n *store.Network) {
	if n == nil || l.Override.Kind != store.KindNone {
		return
	}
	l.Override, l.network = all.Remaining(n), n
	switch l.Override.Kind {
	case store.KindExempt:
		l.Decision.Exempt = true
	case store.KindBanned:
		l.banned(l.Override.For)
	}
}

// Outcome returns the outcome that a request would have.
func (l *Look) Outcome(z *zone.Zone) outcome.Outcome {
	keyless := z.Template.Varies() && l.Of.Key == z.Template.Empty
	o := outcome.Allowed
	switch {
	case keyless && z.MissingKey.Word == config.Reject:
		o = outcome.Rejected
	case keyless && z.MissingKey.Word == config.MissingSkip, l.Decision.Exempt:
		return outcome.Exempt
	case l.Ban != nil:
		o = outcome.Banned
	case !l.Decision.Allowed:
		o = zone.RefusalOutcome(&l.Decision)
	}
	if o != outcome.Allowed && z.IsDryRun(l.Of.Key) {
		return outcome.DryRun
	}
	return o
}

// State describes the key under the limit of a policy.
func (l *Look) State(z *zone.Zone, policy *zone.QuotaPolicy, o outcome.Outcome) *adminapi.Key {
	k := &adminapi.Key{
		Zone: z.Name, KeyText: KeyText(z.Template, l.Of.Key, len(l.Of.Key)), Plan: policy.Plan,
		Limit: DescribeRule(l.Rule), Rollout: z.Rollout(), Cost: l.Cost, CostFrom: z.Cost.From,
		Ban: l.Ban, Refusals: l.Refusals, Override: l.override(), Overrides: z.Overrides,
		Outcome: outcome.Names[o], Refused: o.Refused(), QuotaStatus: *adminapi.NewQuotaStatus(l.Decision), Slots: policy.Slots,
	}
	if k.RetryAfter > 0 { // a queue may have a place before there is more in it
		k.RetryAfter = max(k.RetryAfter, k.NextAfter)
		if l.Refusals != nil && l.Refusals.Begins { // the next request begins a ban
			k.RetryAfter = max(k.RetryAfter, l.Refusals.NextBan)
		}
	}
	return k
}

// override describes the override that decides about the key; nil if none does.
func (l *Look) override() *adminapi.Override {
	if l.Override.Kind == store.KindNone {
		return nil
	}
	o := DescribeOverride(&l.Override)
	if l.network != nil {
		o.Network = l.network.Prefix.String()
	}
	if l.Override.Kind == store.KindLimit {
		here := l.Decision.Override != "" || l.network != nil
		o.Limit, o.Elsewhere = DescribeLimit(l.Rule, l.Override.Limit, here), !here
	}
	return &o
}

// DescribeOverride describes an override, but for its limit.
func DescribeOverride(o *store.Override) adminapi.Override {
	info := adminapi.Override{Kind: o.Kind.String(), Note: o.Note, Since: o.Since, SetBy: o.By}
	if o.For > 0 {
		info.Until = why.At(o.For)
	}
	return info
}

// KeyText returns the text of a key, or of the beginning of a key that is length bytes long.
func KeyText(template *key.Template, text string, length int) adminapi.KeyText {
	t := adminapi.NewKeyText(text, length)
	if template.NumPlaceholders() > 1 {
		t.Parts, _ = template.Values(text)
	}
	return t
}

// patience bounds the calls to a store for operators, in addition to the store's timeout.
const patience = 10 * time.Second

// WithStore calls do with an open store. A call that has begun goes on if nobody waits for it.
func WithStore(ctx context.Context, ref *pool.Ref, do func(context.Context, store.Store) error) error {
	session, err := ref.Begin()
	if err != nil {
		return err
	}
	defer session.End()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return do(ctx, session.Store.Store)
}
