package admin

import (
	"cmp"
	"context"
	"net/http"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/peek"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/running"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// showOverrides lists the networks and keys of zones that have an override, and then the keys that zones have banned.
func showOverrides(c *adminCall) (any, error) {
	n, err := c.intParameter("n", 1000, 1, 100_000)
	if err != nil {
		return nil, err
	}
	lists := []adminapi.List{}
	for _, z := range c.zones() {
		list, err := listOf(c.request.Context(), z, int(n))
		if err != nil {
			return nil, adminError(http.StatusServiceUnavailable, "listing keys in %s: %w", pool.Describe(z.Store.Backend), err)
		}
		lists = append(lists, list)
	}
	return lists, nil
}

// listOf lists up to n networks and keys.
func listOf(ctx context.Context, z *running.Zone, n int) (list adminapi.List, err error) {
	list = adminapi.List{Zone: z.Name, Keys: []adminapi.Listed{}}
	if _, ok := z.Store.Store.Store.(store.Overrider); !ok || z.KeyRules == nil || !z.HasLimit() {
		return list, nil
	}
	networks := networksOf(z)
	for network := range networks.All() {
		l := listed(z, &store.Listed{Key: network.Prefix.String(), Override: networks.Remaining(network)}, adminapi.ByOverride)
		l.Network, l.Requests, l.DryRun = l.Key, network.Requests(), z.MayTry("", true)
		list.Keys = append(list.Keys, l)
	}
	for _, by := range []string{adminapi.ByOverride, adminapi.ByRefusals} {
		for cursor, more := "", true; more && err == nil && len(list.Keys) <= n; more = cursor != "" {
			err = peek.WithStore(ctx, z.Store, func(ctx context.Context, s store.Store) (err error) {
				var some []store.Listed
				some, cursor, err = nextListed(ctx, z, s.(store.Overrider), by, cursor)
				for i := range some {
					list.Keys = append(list.Keys, listed(z, &some[i], by))
				}
				return err
			})
			err = cmp.Or(err, ctx.Err()) // it changes nothing, so it ends when nobody waits
		}
	}
	if list.More = len(list.Keys) > n; list.More {
		list.Keys = list.Keys[:n]
	}
	return list, err
}

// nextListed returns some of the keys that have an override, or that the zone has banned.
func nextListed(ctx context.Context, z *running.Zone, s store.Overrider, by, cursor string) ([]store.Listed, string, error) {
	const most = 1000
	switch rule := z.Rules()[0]; {
	case by == adminapi.ByOverride && z.Overrides:
		return s.Overrides(ctx, rule, cursor, most)
	case by == adminapi.ByRefusals && z.KeyRules.Ban != nil:
		return s.Bans(ctx, rule, z.KeyRules.Ban, cursor, most)
	}
	return nil, "", nil
}

// listed describes a key or a network of a list.
func listed(z *running.Zone, l *store.Listed, by string) adminapi.Listed {
	all := adminapi.Listed{KeyText: peek.KeyText(z.Template, l.Key, len(l.Key)), By: by, Override: peek.DescribeOverride(&l.Override), Unknown: l.Unknown, DryRun: z.MayTry(l.Key, l.Unknown)}
	if l.Unknown {
		all.Parts = nil
	}
	if l.Override.Kind == store.KindLimit { // of several rules, a list of keys does not tell for which it is
		rules := z.Rules()
		all.Limit = peek.DescribeLimit(rules[0], l.Override.Limit, len(rules) == 1 || rules[0].Algorithm().Name() == l.Override.Algorithm)
	}
	return all
}
