package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// lister lists some keys of a zone from a cursor on, as [store.Overrider] does.
type lister = func(ctx context.Context, s store.Overrider, cursor string, n int) (all []adminapi.Listed, next string, err error)

// showOverrides lists the keys of a zone that have an override.
func showOverrides(c *adminCall) (any, error) {
	return c.list(c.zone.listOverrides)
}

// The parts of a list of bans, each with cursors of its own.
const (
	bansByRefusals = "refusals-"
	bansByOperator = "override-"
)

// showBans lists the keys of a zone that are banned: after refusals, and then by an operator.
func showBans(c *adminCall) (any, error) {
	return c.list(func(ctx context.Context, s store.Overrider, cursor string, n int) ([]adminapi.Listed, string, error) {
		z := c.zone
		if at, ok := strings.CutPrefix(cursor, bansByOperator); ok {
			listed, next, err := z.listOverrides(ctx, s, at, n)
			var bans []adminapi.Listed
			for _, l := range listed {
				if l.Kind == store.KindBanned.String() {
					l.By = adminapi.ByOverride
					bans = append(bans, l)
				}
			}
			if next != "" {
				next = bansByOperator + next
			}
			return bans, next, err
		}
		at, ok := strings.CutPrefix(cmp.Or(cursor, bansByRefusals), bansByRefusals)
		switch {
		case !ok:
			return nil, "", fmt.Errorf("%w: %q", store.ErrCursor, cursor)
		case z.KeyRules == nil || z.KeyRules.Ban == nil || len(z.Rules()) == 0:
			return nil, bansByOperator, nil
		}
		listed, next, err := s.Bans(ctx, z.Rules()[0], z.KeyRules.Ban, at, n)
		bans := z.describeListed(listed)
		for i := range bans {
			bans[i].By = adminapi.ByRefusals
		}
		if next == "" {
			return bans, bansByOperator, err
		}
		return bans, bansByRefusals + next, err
	})
}

// networkCursor begins the cursor of a page that begins with the nth network.
const networkCursor = "network-"

// listOverrides lists the networks of the zone that have an override, and then its keys.
func (z *runningZone) listOverrides(
	ctx context.Context, s store.Overrider, cursor string, n int,
) (all []adminapi.Listed, next string, err error) {
	if !z.Overrides || len(z.Rules()) == 0 {
		return nil, "", nil
	}
	if at, ok := strings.CutPrefix(cmp.Or(cursor, networkCursor+"0"), networkCursor); ok {
		from, err := strconv.ParseUint(at, 10, 32)
		if err != nil {
			return nil, "", fmt.Errorf("%w: %q", store.ErrCursor, cursor)
		}
		networks, nth := z.networks(), uint64(0)
		for network := range networks.All() {
			if nth++; nth > from {
				all = append(all, z.listed(networks, network))
			}
			if len(all) == n {
				return all, networkCursor + strconv.FormatUint(nth, 10), nil
			}
		}
		cursor = ""
	}
	listed, next, err := s.Overrides(ctx, z.Rules()[0], cursor, n-len(all))
	return append(all, z.describeListed(listed)...), next, err
}

func (z *runningZone) describeListed(listed []store.Listed) []adminapi.Listed {
	all := make([]adminapi.Listed, len(listed))
	for i, l := range listed {
		o := overrideInfo(&l.Override)
		if l.Override.Kind == store.KindLimit {
			rules := z.Rules()
			o.Limit = describeLimit(rules[0], l.Override.Limit, len(rules) == 1) // a list does not tell for which of several it is
		}
		all[i] = adminapi.Listed{KeyText: keyText(z.Template, l.Key, len(l.Key)), Override: o, Unknown: l.Unknown, DryRun: z.mayTry(l.Key, l.Unknown)}
		if l.Unknown {
			all[i].KeyText = adminapi.NewKeyText(l.Key, len(l.Key))
		}
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

// list answers with a page of a list.
func (c *adminCall) list(page lister) (any, error) {
	if err := c.checkParameters("n", "cursor"); err != nil {
		return nil, err
	}
	n, err := c.intParameter("n", 100, 1, 1000)
	if err != nil {
		return nil, err
	}
	z := c.zone
	if err := z.checkOverrider(); err != nil {
		return nil, err
	}
	answer := adminapi.List{Zone: z.Name, Keys: []adminapi.Listed{}}
	err = withStore(c.request.Context(), z.store, func(ctx context.Context, s store.Store) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(c.request.Context(), cancel)() // a list changes nothing, so it ends when nobody waits
		keys, next, err := page(ctx, s.(store.Overrider), c.query.Get("cursor"), int(n))
		answer.Keys, answer.Next = append(answer.Keys, keys...), next
		return err
	})
	switch {
	case errors.Is(err, store.ErrCursor):
		return nil, adminError(badRequest, "%w: begin without one", err)
	case err != nil:
		return nil, adminError(http.StatusServiceUnavailable, "listing keys in %s: %w", pool.Describe(z.store.Backend), err)
	}
	return answer, nil
}
