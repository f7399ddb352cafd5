package admin

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	keys "github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// overrideRequest asks for an override: one of Limit, Plan and Exempt.
type overrideRequest struct {
	// Limit is the key's own limit.
	Limit *requestedLimit `json:"limit,omitempty"`

	// Plan is the plan whose current limit the key gets.
	Plan string `json:"plan,omitempty"`

	// Exempt says that the zone does not limit the key.
	Exempt bool `json:"exempt,omitempty"`

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
func setOverride(c *adminCall) error {
	of, err := c.readOverridable()
	if err != nil {
		return err
	}
	var request overrideRequest
	if err := c.readBody(&request, false, "one of limit, plan and exempt, and perhaps for and note"); err != nil {
		return err
	}
	rule, override, err := c.zone.overrideOf(&request)
	if err == nil {
		err = request.applyTo(&override)
	}
	return c.set(of, rule, override, err)
}

// banKey bans a key, without an end unless the body says for how long.
func banKey(c *adminCall) error {
	of, err := c.readOverridable()
	if err != nil {
		return err
	}
	var request validity
	if err := c.readBody(&request, true, "for and note"); err != nil {
		return err
	}
	override := store.Override{Kind: store.KindBanned}
	return c.set(of, c.zone.Rules()[0], override, request.applyTo(&override))
}

// applyTo adds the validity to an override.
func (l *validity) applyTo(s *store.Override) error {
	if s.Note == "" || l.Note != "" {
		s.Note = l.Note
	}
	if l.For == nil {
		return nil
	}
	if err := duration.CheckMin("for", time.Duration(*l.For), store.MinOverride); err != nil {
		return err
	}
	if s.For = time.Duration(*l.For); s.For > algorithms.MaxWindow {
		return fmt.Errorf("for must be at most %s, got %s", duration.Format(algorithms.MaxWindow), duration.Format(s.For))
	}
	return nil
}

// set sets an override, unless it is invalid.
func (c *adminCall) set(of store.Selector, rule *store.Rule, override store.Override, err error) error {
	if err == nil {
		_, err = rule.PrepareOverride(override)
	}
	if err != nil {
		return adminError(badRequest, "%w", err)
	}
	override.Since, override.By = time.Now().UTC().Truncate(time.Second), whoAsks(c.request)
	return c.withOverrider(of, func(ctx context.Context, s store.Overrider, in store.Store) (answer adminapi.Reset, err error) {
		key := of.String()
		was, _ := s.GetRule(ctx, rule, of) // a damaged one is replaced, too
		if err := s.SetRule(ctx, rule, of, override); err != nil {
			return answer, err
		}
		action := actionOverride
		if override.Kind == store.KindBanned {
			action = actionBan
		}
		c.changed(action, key, describeChange(rule, &override), override.Note)
		switch {
		case override.Kind == store.KindBanned:
			c.zone.logBan(of, &override)
		case was.Kind == store.KindBanned:
			c.zone.logUnban(key)
		}
		answer.Warning = c.zone.caveats(of)
		return answer, nil
	})
}

// caveats says why an override of the zone holds less than one expects; empty if it does not.
func (z *runningZone) caveats(of store.Selector) string {
	var all []string
	if !z.store.Store.Remote {
		all = append(all, "it holds in this process only, until it ends (store memory)")
	}
	if z.mayTry(of.Key, of.IsNetwork()) {
		all = append(all, fmt.Sprintf("the zone only tries it out (%s)", z.rollout()))
	}
	return strings.Join(all, "; ")
}

// clearOverride clears the override of a key, which may be a ban.
func clearOverride(c *adminCall) error {
	of, err := c.readOverridable()
	if err != nil {
		return err
	}
	rule := c.zone.Rules()[0]
	return c.withOverrider(of, func(ctx context.Context, s store.Overrider, in store.Store) (answer adminapi.Reset, err error) {
		key := of.String()
		was, damaged := s.GetRule(ctx, rule, of) // a damaged one is cleared, too
		if err := s.SetRule(ctx, rule, of, store.Override{}); err != nil {
			return answer, err
		}
		if was.Kind != store.KindNone {
			c.changed(actionClear, key, "was "+describeChange(rule, &was), was.Note)
		}
		if was.Kind == store.KindBanned {
			c.zone.logUnban(key)
		}
		answer.Unchanged = was.Kind == store.KindNone && damaged == nil
		return without("it had no override", answer.Unchanged, c.zone.remains(ctx, in, of, false), answer), nil
	})
}

// unbanKey ends a ban, by an operator or by the zone.
func unbanKey(c *adminCall) error {
	of, err := c.readTarget()
	if err != nil {
		return err
	}
	if c.zone.KeyRules == nil {
		return adminError(http.StatusConflict, "bans are not enabled in zone %q: add the option overrides or ban", c.zone.Name)
	}
	return c.withOverrider(of, func(ctx context.Context, s store.Overrider, in store.Store) (answer adminapi.Reset, err error) {
		key := of.String()
		by, counted := c.zone.bannedBy(ctx, in, of)
		for _, rule := range c.zone.Rules() { // the deny cache may have a ban under any of them
			if err := s.Unban(ctx, rule, of); err != nil {
				return answer, err
			}
		}
		if answer.Unchanged = by == "" && !counted; !answer.Unchanged {
			c.changed(actionUnban, key, "", "")
		}
		if by != "" {
			c.zone.logUnban(key)
		}
		return without("it was not banned", by == "", c.zone.remains(ctx, in, of, true), answer), nil
	})
}

// bannedBy returns what has banned a target, or "", and whether refusals are counted that would lead to a ban. An
// override that cannot be read may be a ban.
func (z *runningZone) bannedBy(ctx context.Context, in store.Store, of store.Selector) (by string, counted bool) {
	if len(z.Rules()) == 0 {
		return "", false
	}
	if of.IsNetwork() {
		if z.store.Networks(z.Rules()[0]).Override(of.Network).Kind == store.KindBanned {
			by = adminapi.ByOverride
		}
		return by, false
	}
	p := peek{rule: z.Rules()[0], key: of.Key, rules: z.KeyRules}
	if err := p.run(ctx, in); err != nil {
		return adminapi.ByOverride, false
	}
	if ban := p.ban(); ban != nil {
		by = ban.By
	}
	return by, p.refusals != nil && p.refusals.Count > 0
}

// remains says which override still decides about a key, though it may be that of a network; empty for none. With
// bans it looks for bans only.
func (z *runningZone) remains(ctx context.Context, in store.Store, of store.Selector, bans bool) string {
	if of.IsNetwork() || len(z.Rules()) == 0 {
		return ""
	}
	p := peek{rule: z.Rules()[0], key: of.Key, rules: z.KeyRules}
	if p.run(ctx, in) != nil {
		return ""
	}
	all := z.networks()
	p.under(all, all.Find(keys.ParseAddress(of.Key)))
	switch o := p.override(); {
	case o == nil || bans && p.stored.Kind != store.KindBanned:
		return ""
	case o.Network == "":
		return "an operator has banned it: unban it"
	case p.stored.Kind == store.KindBanned:
		return fmt.Sprintf("its network %s is banned: unban that", o.Network)
	default:
		return fmt.Sprintf("its network %s has an override: clear that", o.Network)
	}
}

// without adds to an answer that there was nothing to change, if so, and what remains.
func without(what string, is bool, remains string, answer adminapi.Reset) adminapi.Reset {
	switch {
	case is && remains != "":
		answer.Warning = what + "; " + remains
	case is:
		answer.Warning = what
	default:
		answer.Warning = remains
	}
	return answer
}

// withOverrider calls do with the zone's store, and writes what it answers.
func (c *adminCall) withOverrider(
	of store.Selector, do func(context.Context, store.Overrider, store.Store) (adminapi.Reset, error),
) error {
	if err := c.zone.checkOverrider(); err != nil {
		return err
	}
	var answer adminapi.Reset
	if err := withStore(c.zone.store, c, func(ctx context.Context, s store.Store) (err error) {
		answer, err = do(ctx, s.(store.Overrider), s)
		return err
	}); err != nil {
		return c.zone.storeError(err)
	}
	if of.IsNetwork() {
		answer.Network = of.String()
	}
	return c.writeReset(&answer)
}

// checkOverrider returns an error if the zone's store is no [store.Overrider].
func (z *runningZone) checkOverrider() error {
	if _, ok := z.store.Store.Store.(store.Overrider); !ok {
		what := pool.Describe(z.store.Backend)
		return adminError(http.StatusNotImplemented, "%s has neither overrides nor lists of keys", what)
	}
	return nil
}

// readOverridable reads the key or the network of a zone that may have overrides.
func (c *adminCall) readOverridable() (of store.Selector, err error) {
	if of, err = c.readTarget(); err == nil {
		err = c.zone.checkOverridable()
	}
	return of, err
}

// checkOverridable returns an error if overrides have no effect in the zone.
func (z *runningZone) checkOverridable() error {
	switch {
	case !z.Overrides:
		return adminError(http.StatusConflict, "zone %q does not allow overrides: add the option overrides", z.Name)
	case len(z.Rules()) == 0:
		return adminError(http.StatusConflict, "zone %q has no limit to override: all of its plans are unlimited", z.Name)
	}
	return nil
}
