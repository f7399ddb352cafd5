package admin

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
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

// set sets the override that the body asks for, or a ban, for which the body may be empty.
func (c *adminCall) set(ban bool) (any, error) {
	of, err := c.readOverridable()
	if err != nil {
		return nil, err
	}
	var request overrideRequest
	var body any = &request
	fields, action := "limit, and perhaps for and note", actionOverride
	if ban {
		body, fields, action = &request.validity, "for and note", actionBan
	}
	if err := c.readBody(body, ban, fields); err != nil {
		return nil, err
	}
	rule, override := c.zone.Rules()[0], store.Override{Kind: store.KindBanned}
	if !ban {
		rule, override, err = OverrideByText(c.zone.Zone, when(request.Limit != nil, fmt.Sprint(request.Limit)))
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
	return c.change(of, func(ctx context.Context, s store.Overrider, _ *standing) (answer adminapi.Reset, err error) {
		if err := s.SetRule(ctx, rule, of, override); err != nil {
			return answer, err
		}
		c.changed(action, of.String(), describeChange(rule, &override), override.Note)
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
func clearOverride(c *adminCall) (any, error) {
	of, err := c.readOverridable()
	if err != nil {
		return nil, err
	}
	rule := c.zone.Rules()[0]
	return c.change(of, func(ctx context.Context, s store.Overrider, was *standing) (answer adminapi.Reset, err error) {
		if err := s.SetRule(ctx, rule, of, store.Override{}); err != nil {
			return answer, err
		}
		if was.Kind != store.KindNone {
			c.changed(actionClear, of.String(), "was "+describeChange(rule, &was.Override), was.Note)
		}
		answer.Unchanged = was.Kind == store.KindNone && was.damaged == nil
		answer.Warning = when(answer.Unchanged, "it had no override")
		return answer, nil
	})
}

// unbanKey ends a ban, by an operator or by the zone.
func unbanKey(c *adminCall) (any, error) {
	of, err := c.readTarget()
	if err != nil {
		return nil, err
	}
	if c.zone.KeyRules == nil {
		return nil, adminError(http.StatusConflict, "bans are not enabled in zone %q: add the option overrides or ban", c.zone.Name)
	}
	return c.change(of, func(ctx context.Context, s store.Overrider, was *standing) (answer adminapi.Reset, err error) {
		for _, rule := range c.zone.Rules() { // the deny cache may have a ban under any of them
			if err := s.Unban(ctx, rule, of); err != nil {
				return answer, err
			}
		}
		banned := was.damaged != nil || was.Kind == store.KindBanned || was.refused
		if answer.Unchanged = !banned && was.counted == 0; !answer.Unchanged {
			c.changed(actionUnban, of.String(), "", "")
		}
		answer.Warning = warning(when(!banned, "it was not banned"), c.refusal(of))
		return answer, nil
	})
}

// standing is what decides about a key or a network besides its limit.
type standing struct {
	store.Override       // its own
	damaged        error // why this cannot be read; it may be a ban
	refused        bool  // the zone has banned the key, because it was refused too often
	counted        int64 // the refusals that would lead to a ban
}

// standingOf asks the store for what decides about a key or a network.
func (z *runningZone) standingOf(ctx context.Context, s store.Store, of store.Selector) (st standing) {
	if !hasLimit(z) {
		return st
	}
	p := peek{rule: z.Rules()[0], key: of.Key, rules: z.KeyRules}
	if of.IsNetwork() {
		p.stored, st.damaged = s.(store.Overrider).GetRule(ctx, p.rule, of)
	} else {
		st.damaged = p.run(ctx, s)
	}
	st.Override, st.refused = p.stored, p.ban != nil && p.ban.By == adminapi.ByRefusals
	if p.refusals != nil {
		st.counted = p.refusals.Count
	}
	return st
}

// refusal says which ban still refuses a key, whose change should let it through; empty if none does.
func (c *adminCall) refusal(of store.Selector) string {
	if of.IsNetwork() {
		return ""
	}
	k, err := c.zone.lookUp(c, of.Key)
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

// change has do change an override in the zone's store, and writes what it answers.
func (c *adminCall) change(of store.Selector, do func(context.Context, store.Overrider, *standing) (adminapi.Reset, error)) (any, error) {
	if err := c.zone.checkOverrider(); err != nil {
		return nil, err
	}
	var answer adminapi.Reset
	if err := withStore(c.request.Context(), c.zone.store, func(ctx context.Context, in store.Store) (err error) {
		s := in.(store.Overrider)
		was := c.zone.standingOf(ctx, in, of)
		answer, err = do(ctx, s, &was)
		return err
	}); err != nil {
		return nil, c.zone.storeError(err)
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
