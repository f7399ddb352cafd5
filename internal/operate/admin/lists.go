package admin

import (
	"context"
	"net/http"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// lister lists some keys of a zone from a cursor on, as [store.Overrider] does.
type lister = func(ctx context.Context, s store.Overrider, cursor string, n int) (all []adminapi.Listed, next string, err error)

// showOverrides lists the networks and keys of a zone that have an override.
func showOverrides(c *adminCall) (any, error) { return c.list(c.zone.listOverrides) }

// showBans lists the keys of a zone that are banned: after refusals, and then by an operator.
func showBans(c *adminCall) (any, error) { return c.list(c.zone.listBans, c.zone.listBanned) }

// listBans lists the keys that are banned after refusals.
func (z *runningZone) listBans(ctx context.Context, s store.Overrider, cursor string, n int) (all []adminapi.Listed, next string, err error) {
	if z.KeyRules == nil || z.KeyRules.Ban == nil || !hasLimit(z) {
		return nil, "", nil
	}
	listed, next, err := s.Bans(ctx, z.Rules()[0], z.KeyRules.Ban, cursor, n)
	for i := range listed {
		all = append(all, z.listed(&listed[i]))
		all[i].By = adminapi.ByRefusals
	}
	return all, next, err
}

// listBanned lists the networks and keys that an operator has banned.
func (z *runningZone) listBanned(ctx context.Context, s store.Overrider, cursor string, n int) (all []adminapi.Listed, next string, err error) {
	all, next, err = z.listOverrides(ctx, s, cursor, n)
	all = slices.DeleteFunc(all, func(l adminapi.Listed) bool { return l.Kind != store.KindBanned.String() })
	for i := range all {
		all[i].By = adminapi.ByOverride
	}
	return all, next, err
}

// listOverrides lists the networks of the zone that have an override, and then its keys.
func (z *runningZone) listOverrides(ctx context.Context, s store.Overrider, cursor string, n int) (all []adminapi.Listed, next string, err error) {
	if !z.Overrides || !hasLimit(z) {
		return nil, "", nil
	}
	if networks := z.networks(); cursor == "" {
		for network := range networks.All() {
			l := z.listed(&store.Listed{Key: network.Prefix.String(), Override: networks.Remaining(network)})
			l.Network, l.Requests, l.DryRun = l.Key, network.Requests(), z.mayTry("", true)
			all = append(all, l)
		}
	}
	listed, next, err := s.Overrides(ctx, z.Rules()[0], cursor, n)
	for i := range listed {
		all = append(all, z.listed(&listed[i]))
	}
	return all, next, err
}

// listed describes a key or a network of a list.
func (z *runningZone) listed(l *store.Listed) adminapi.Listed {
	all := adminapi.Listed{KeyText: keyText(z.Template, l.Key, len(l.Key)), Override: overrideInfo(&l.Override), Unknown: l.Unknown, DryRun: z.mayTry(l.Key, l.Unknown)}
	if l.Unknown {
		all.Parts = nil
	}
	if l.Override.Kind == store.KindLimit { // of several rules, a list of keys does not tell for which it is
		rules := z.Rules()
		all.Limit = describeLimit(rules[0], l.Override.Limit, len(rules) == 1 || rules[0].Algorithm().Name() == l.Override.Algorithm)
	}
	return all
}

// mayTry reports whether the zone is only tried out on a key. With several, as those of a network, or one that is not
// known, it reports whether that may be so.
func (z *runningZone) mayTry(key string, several bool) bool {
	return !slices.ContainsFunc(z.uses, func(use *zone.Zone) bool {
		return !use.IsDryRun(key) && (!several || use.Enforce == nil || *use.Enforce == 100)
	})
}

// list answers with lists of a zone, one after the other.
func (c *adminCall) list(lists ...lister) (any, error) {
	n, err := c.intParameter("n", 1000, 1, 100_000)
	if err != nil {
		return nil, err
	}
	z := c.zone
	if err := z.checkOverrider(); err != nil {
		return nil, err
	}
	const page = 1000
	answer := adminapi.List{Zone: z.Name, Keys: []adminapi.Listed{}}
	for _, read := range lists {
		for cursor, more := "", true; more && !answer.More; more = cursor != "" {
			err := withStore(c.request.Context(), z.store, func(ctx context.Context, s store.Store) (err error) {
				var some []adminapi.Listed
				some, cursor, err = read(ctx, s.(store.Overrider), cursor, page)
				answer.Keys = append(answer.Keys, some...)
				return err
			})
			if err == nil {
				err = c.request.Context().Err() // it changes nothing, so it ends when nobody waits
			}
			if err != nil {
				return nil, adminError(http.StatusServiceUnavailable, "listing keys in %s: %w", pool.Describe(z.store.Backend), err)
			}
			if answer.More = len(answer.Keys) > int(n); answer.More {
				answer.Keys = answer.Keys[:n]
			}
		}
	}
	return answer, nil
}
