package zone

import (
	"context"
	"net/netip"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// OfAddress keeps the override of a key that is an address. The networks around it must not decide about it, so they are
// told first, and told last that they may again.
type OfAddress struct {
	store.Overrider
	Networks store.Networker
	Key      netip.Prefix
}

// Set implements [store.Overrider].
func (o *OfAddress) Set(ctx context.Context, rule *store.Rule, key string, to store.Override) error {
	if err := o.Networks.SetNetwork(ctx, rule, o.Key, store.Override{For: to.For}); err != nil {
		return err
	}
	return o.Overrider.Set(ctx, rule, key, to)
}

// Clear implements [store.Overrider].
func (o *OfAddress) Clear(ctx context.Context, rule *store.Rule, key string) error {
	if err := o.Overrider.Clear(ctx, rule, key); err != nil {
		return err
	}
	return o.release(ctx, rule)
}

// Unban implements [store.Overrider]. A key without an override is released, too, in case that has failed before.
func (o *OfAddress) Unban(ctx context.Context, rule *store.Rule, key string) error {
	was, failed := o.Get(ctx, rule, key)
	err := o.Overrider.Unban(ctx, rule, key)
	if err == nil && failed == nil && (was.Kind == store.KindBanned || was.Kind == store.KindNone) {
		err = o.release(ctx, rule)
	}
	return err
}

// release lets the networks around the key decide again. This process may not know yet that they do not.
func (o *OfAddress) release(ctx context.Context, rule *store.Rule) error {
	return o.Networks.ClearNetwork(ctx, rule, o.Key)
}
