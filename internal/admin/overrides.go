package admin

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/widen"
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
func (c *adminCall) set(of target, rule *store.Rule, override store.Override, err error) error {
	if err == nil {
		_, err = rule.PrepareOverride(override)
	}
	if err != nil {
		return adminError(badRequest, "%w", err)
	}
	override.Since, override.By = time.Now().UTC().Truncate(time.Second), whoAsks(c.request)
	return c.withOverrider(of, func(ctx context.Context, s store.Overrider, in store.Store) error {
		key := of.text()
		was, _ := s.Get(ctx, rule, key) // a damaged one is replaced, too
		if err := s.Set(ctx, rule, key, override); err != nil {
			return err
		}
		action := actionOverride
		if override.Kind == store.KindBanned {
			action = actionBan
		}
		c.changed(ctx, in, action, key, describeChange(rule, &override), override.Note)
		switch {
		case override.Kind == store.KindBanned:
			c.zone.logBan(key, &override)
		case was.Kind == store.KindBanned:
			c.zone.logUnban(key)
		}
		return nil
	})
}

// clearOverride clears the override of a key, which may be a ban.
func clearOverride(c *adminCall) error {
	of, err := c.readOverridable()
	if err != nil {
		return err
	}
	rule := c.zone.Rules()[0]
	return c.withOverrider(of, func(ctx context.Context, s store.Overrider, in store.Store) error {
		key := of.text()
		was, _ := s.Get(ctx, rule, key) // a damaged one is cleared, too
		if err := s.Clear(ctx, rule, key); err != nil {
			return err
		}
		if was.Kind != store.KindNone {
			c.changed(ctx, in, actionClear, key, "was "+describeChange(rule, &was), was.Note)
		}
		if was.Kind == store.KindBanned {
			c.zone.logUnban(key)
		}
		return nil
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
	return c.withOverrider(of, func(ctx context.Context, s store.Overrider, in store.Store) error {
		key := of.text()
		for _, rule := range c.zone.Rules() { // the deny cache may have a ban under any of them
			if err := s.Unban(ctx, rule, key); err != nil {
				return err
			}
		}
		if of.isKey() {
			if err := widen.Forget(ctx, in, c.zone.Zone, key); err != nil {
				return err
			}
		}
		c.changed(ctx, in, actionUnban, key, "", "")
		c.zone.logUnban(key)
		return nil
	})
}

// withOverrider calls do with what keeps the override in the zone's store.
func (c *adminCall) withOverrider(of target, do func(context.Context, store.Overrider, store.Store) error) error {
	z, supported := c.zone, false
	err := withStore(z.store, c, func(ctx context.Context, s store.Store) error {
		overrider := z.overrider(s, of)
		if supported = overrider != nil; !supported {
			return nil
		}
		return do(ctx, overrider, s)
	})
	switch {
	case err == nil && supported && !of.isKey():
		return c.writeJSON(of.answer())
	case err == nil && !supported && of.isKey():
		return adminError(http.StatusNotImplemented, "%s does not support overrides", pool.Describe(z.store.Backend))
	case err == nil && !supported:
		return adminError(http.StatusNotImplemented, "%s keeps no overrides of networks and groups", pool.Describe(z.store.Backend))
	}
	return c.writeDone(err)
}

// readOverridable reads the key, the network or the group of a zone that may have overrides.
func (c *adminCall) readOverridable() (of target, err error) {
	if of, err = c.readTarget(); err == nil {
		err = c.zone.checkOverridable()
	}
	return of, err
}

// checkOverridable returns an error if overrides have no effect in the zone.
func (z *runningZone) checkOverridable() error {
	switch {
	case !z.Overrides():
		return adminError(http.StatusConflict, "zone %q does not allow overrides: add the option overrides", z.Name)
	case len(z.Rules()) == 0:
		return adminError(http.StatusConflict, "zone %q has no limit to override: all of its plans are unlimited", z.Name)
	}
	return nil
}
