package admin

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/peek"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/running"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// overrideRequest asks for an override.
type overrideRequest struct {
	// Limit is the key's own limit, a text or a number of events, or "exempt".
	Limit any `json:"limit,omitempty"`

	validity
}

// validity says how long an override holds, and why.
type validity struct {
	// For is how long the override holds: from 1s to 3660d. Default: until it is cleared.
	For *caddy.Duration `json:"for,omitempty"`

	// Note is a note for people.
	Note string `json:"note,omitempty"`
}

// setOverride replaces the override of a key.
func setOverride(c *adminCall) (any, error) { return c.set(false) }

// banKey bans a key, without an end unless the body says for how long.
func banKey(c *adminCall) (any, error) { return c.set(true) }

// applyTo adds the validity to an override.
func (l *validity) applyTo(s *store.Override) error {
	if s.Note = l.Note; l.For == nil {
		return nil
	}
	if s.For = time.Duration(*l.For); s.For < store.MinOverride { // 0 in an override is no end
		return fmt.Errorf(`for must be at least %s, got %s: write a text such as "2h"`, store.MinOverride, s.For)
	}
	return nil
}

// set sets the override that the body asks for, or a ban, for which the body may be empty.
func (c *adminCall) set(ban bool) (any, error) {
	of, err := c.readOverridable()
	if err != nil {
		return nil, err
	}
	var request overrideRequest
	var body any = &request
	fields, action := "limit, and perhaps for and note", "override"
	if ban {
		body, fields, action = &request.validity, "for and note", "ban"
	}
	if err := c.readBody(body, ban, fields); err != nil {
		return nil, err
	}
	rule, override := c.zone.Rules()[0], store.Override{Kind: store.KindBanned}
	if !ban {
		rule, override, err = peek.OverrideByText(c.zone.Zone, when(request.Limit != nil, fmt.Sprint(request.Limit)))
	}
	if err == nil {
		err = request.applyTo(&override)
	}
	if err == nil {
		_, err = rule.PrepareOverride(override)
	}
	if err != nil {
		return nil, adminError(badRequest, "%w", err)
	}
	override.Since, override.By = time.Now().UTC().Truncate(time.Second), whoAsks(c.request)
	return c.change(of, func(ctx context.Context, s store.Store, _ *standing) (answer adminapi.Reset, err error) {
		if err := s.(store.Overrider).SetRule(ctx, rule, of, override); err != nil {
			return answer, err
		}
		c.changed(action, of.String(), describeChange(rule, &override), override.Note)
		answer.Warning = caveats(c.zone, of)
		return answer, nil
	})
}

// caveats says why an override of the zone holds less than one expects; empty if it does not.
func caveats(z *running.Zone, of store.Selector) string {
	return warning(
		when(!z.Store.Store.Remote, "it holds in this process only, until it ends (store memory)"),
		when(z.MayTry(of.Key, of.IsNetwork()), fmt.Sprintf("the zone only tries it out (%s)", z.Rollouts())),
	)
}

// clearOverride clears the override of a key, which may be a ban.
func clearOverride(c *adminCall) (any, error) {
	of, err := c.readOverridable()
	if err != nil {
		return nil, err
	}
	rule := c.zone.Rules()[0]
	return c.change(of, func(ctx context.Context, s store.Store, was *standing) (answer adminapi.Reset, err error) {
		if err := s.(store.Overrider).SetRule(ctx, rule, of, store.Override{}); err != nil {
			return answer, err
		}
		had := was.Override.Kind != store.KindNone
		if had {
			c.changed("clear", of.String(), "was "+describeChange(rule, &was.Override), was.Override.Note)
		}
		answer.Unchanged = !had && was.damaged == nil
		answer.Warning = when(answer.Unchanged, "it had no override")
		return answer, nil
	})
}

// unbanKey ends a ban, by an operator or by the zone.
func unbanKey(c *adminCall) (any, error) {
	if c.zone.KeyRules == nil {
		return nil, adminError(http.StatusConflict, "bans are not enabled in zone %q: add the option overrides or ban", c.zone.Name)
	}
	of, err := c.readTarget()
	if err != nil {
		return nil, err
	}
	return c.change(of, func(ctx context.Context, s store.Store, was *standing) (answer adminapi.Reset, err error) {
		for _, rule := range c.zone.Rules() { // the deny cache may have a ban under any of them
			if err := s.(store.Overrider).Unban(ctx, rule, of); err != nil {
				return answer, err
			}
		}
		banned := was.damaged != nil || was.Override.Kind == store.KindBanned || was.Ban != nil
		if answer.Unchanged = !banned && !was.Punished(); !answer.Unchanged {
			c.changed("unban", of.String(), "", "")
		}
		answer.Warning = warning(when(!banned, "it was not banned"), c.refusal(of))
		return answer, nil
	})
}

// standing is what decides about a key or a network before it is changed.
type standing struct {
	peek.Look
	damaged error // why that cannot be read; it may be a ban
}

// refusal says which ban still refuses a key, whose change should let it through; empty if none does.
func (c *adminCall) refusal(of store.Selector) string {
	if of.IsNetwork() {
		return ""
	}
	k, err := c.lookUp(c.zone, of.Key)
	if err != nil || k.Ban == nil {
		return ""
	}
	return k.Why
}

// when returns a text if something is so.
func when(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

// warning joins what there is to say of a change.
func warning(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "; ")
}

// change has do change a key or a network in the zone's store, and answers what there is to say of that.
func (c *adminCall) change(of store.Selector, do func(context.Context, store.Store, *standing) (adminapi.Reset, error)) (any, error) {
	var answer adminapi.Reset
	if err := peek.WithStore(c.request.Context(), c.zone.Store, func(ctx context.Context, s store.Store) (err error) {
		was := standing{Look: peek.Look{Rules: c.zone.KeyRules, Of: of}}
		if c.zone.HasLimit() {
			was.Rule = c.zone.Rules()[0]
			was.damaged = was.Ask(ctx, s)
		}
		answer, err = do(ctx, s, &was)
		return err
	}); err != nil {
		return nil, storeError(c.zone, err)
	}
	if of.IsNetwork() {
		answer.Network = of.String()
	}
	if answer != (adminapi.Reset{}) {
		return answer, nil
	}
	c.WriteHeader(http.StatusNoContent)
	return nil, nil
}

// readOverridable reads the key or the network of a zone that may have overrides.
func (c *adminCall) readOverridable() (of store.Selector, err error) {
	switch z := c.zone; {
	case !z.Overrides:
		return of, adminError(http.StatusConflict, "zone %q does not allow overrides: add the option overrides", z.Name)
	case !z.HasLimit():
		return of, adminError(http.StatusConflict, "zone %q has no limit to override: all of its plans are unlimited", z.Name)
	}
	return c.readTarget()
}

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
