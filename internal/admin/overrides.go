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
	"github.com/seed-161337e5/caddyratelimit/store"
)

// overrideRequest is what the admin API takes for a key in place of the zone's limit: one
// of Limit, Plan and Exempt.
type overrideRequest struct {
	// Limit is a limit of the key's own.
	Limit *ownLimit `json:"limit,omitempty"`

	// Plan is the plan of the zone whose limit the key gets, as it is now.
	Plan string `json:"plan,omitempty"`

	// Exempt says that the zone does not limit the key.
	Exempt bool `json:"exempt,omitempty"`

	lasting
}

// lasting is for how long, and why.
type lasting struct {
	// For is how long it holds: from 1s to 3660d. Default: until it is cleared.
	For *caddy.Duration `json:"for,omitempty"`

	// Note is for people.
	Note string `json:"note,omitempty"`
}

// setOverride gives a key a setting in place of the one that it has.
func setOverride(c *adminCall) error {
	key, err := c.key()
	if err != nil {
		return err
	}
	if err := c.zone.takesOverrides(); err != nil {
		return err
	}
	var asked overrideRequest
	if err := c.body(&asked, false, "one of limit, plan and exempt, and perhaps for and note"); err != nil {
		return err
	}
	rule, setting, err := c.zone.setting(&asked)
	if err == nil {
		err = asked.on(&setting)
	}
	return c.set(key, rule, setting, err)
}

// banKey bans a key, until it is told otherwise unless the body says for how long.
func banKey(c *adminCall) error {
	key, err := c.key()
	if err != nil {
		return err
	}
	if err := c.zone.takesOverrides(); err != nil {
		return err
	}
	var asked lasting
	if err := c.body(&asked, true, "for and note"); err != nil {
		return err
	}
	setting := store.Override{Kind: store.KindBanned}
	return c.set(key, c.zone.Rules()[0], setting, asked.on(&setting))
}

// on adds itself to a setting.
func (l *lasting) on(s *store.Override) error {
	if s.Note == "" || l.Note != "" {
		s.Note = l.Note
	}
	if l.For == nil {
		return nil
	}
	if err := duration.CheckMin("for", *l.For, store.MinOverride); err != nil {
		return err
	}
	if s.For = time.Duration(*l.For); s.For > algorithms.MaxWindow {
		return fmt.Errorf("for must be at most %s, got %s", duration.Format(algorithms.MaxWindow), duration.Format(s.For))
	}
	return nil
}

// set sets a setting, unless it is none.
func (c *adminCall) set(key string, rule *store.Rule, setting store.Override, err error) error {
	if err == nil {
		_, err = rule.PrepareOverride(setting)
	}
	if err != nil {
		return adminError(badRequest, "%w", err)
	}
	return c.settings(func(ctx context.Context, s store.Overrider) error { return s.Set(ctx, rule, key, setting) })
}

// clearOverride takes a key's setting away, whatever it is.
func clearOverride(c *adminCall) error {
	key, err := c.key()
	if err != nil {
		return err
	}
	if err := c.zone.takesOverrides(); err != nil {
		return err
	}
	return c.settings(func(ctx context.Context, s store.Overrider) error { return s.Clear(ctx, c.zone.Rules()[0], key) })
}

// pardonKey ends a ban, whoever has begun it.
func pardonKey(c *adminCall) error {
	key, err := c.key()
	if err != nil {
		return err
	}
	if c.zone.KeyRules == nil {
		return adminError(http.StatusConflict, "zone %q bans nobody: put overrides or ban into it", c.zone.Name)
	}
	return c.settings(func(ctx context.Context, s store.Overrider) error {
		for _, rule := range c.zone.Rules() { // each may be what this Caddy remembers a ban by
			if err := s.Unban(ctx, rule, key); err != nil {
				return err
			}
		}
		return nil
	})
}

// settings does something with the settings that the zone's store keeps.
func (c *adminCall) settings(do func(context.Context, store.Overrider) error) error {
	z, keeps := c.zone, false
	err := using(z.kept, c, func(ctx context.Context, s store.Store) error {
		var settings store.Overrider
		if settings, keeps = s.(store.Overrider); !keeps {
			return nil
		}
		return do(ctx, settings)
	})
	if err == nil && !keeps {
		return adminError(http.StatusNotImplemented, "%s keeps no settings of single keys", pool.Describe(z.kept.Backend))
	}
	return c.done(err)
}

// takesOverrides tells of a zone where nobody would look at an override.
func (z *runningZone) takesOverrides() error {
	switch {
	case !z.Overrides:
		return adminError(http.StatusConflict, "zone %q takes no overrides: put the option overrides into it", z.Name)
	case len(z.Rules()) == 0:
		return adminError(http.StatusConflict, "zone %q has no limit that could be overridden: all of its plans are unlimited", z.Name)
	}
	return nil
}
