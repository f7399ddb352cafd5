package caddyratelimit

import (
	"context"
	"encoding/base64"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// keyAnswer is what the admin API tells of a key.
type keyAnswer struct {
	Zone string `json:"zone"`
	keyText
	Limit string `json:"limit"`

	// Plan is the plan whose limit the numbers are for.
	Plan string `json:"plan,omitempty"`

	// Refused says that a request of the zone's cost would be refused now.
	Refused bool `json:"refused"`
	standing
}

// showKey peeks: it charges nothing, and makes no key.
func showKey(c *adminCall) error {
	if err := c.known("key", "key_base64", "part", "plan"); err != nil {
		return err
	}
	key, err := c.key()
	if err != nil {
		return err
	}
	z := c.zone
	granted, err := z.grantOf(c.query.Get("plan"))
	if err != nil {
		return err
	}
	decisions := make([]algorithms.Decision, 1)
	err = z.kept.using(c, func(ctx context.Context, s store.Store) error {
		return s.Take(ctx, []store.Check{{Rule: granted.rule, Key: key}}, decisions)
	})
	if err != nil {
		return z.unanswered(err)
	}
	d := decisions[0]
	return c.answer(keyAnswer{
		Zone: z.name, keyText: newKeyText(key, len(key)), Plan: granted.plan, Limit: z.describe(),
		Refused: d.Remaining < z.cost, standing: *newStanding(d),
	})
}

// grantOf is the limit of a plan, or of requests that name none. Where it depends on the
// request, it is the one that is written, or else one that goes with it.
func (z *runningZone) grantOf(name string) (*grant, error) {
	of := z.own
	if chosen, ok := z.plans[name]; ok {
		of = chosen.grants
	} else if name != "" {
		return nil, adminError(badRequest, "zone %q has no plan %q; there are %q", z.name, name, slices.Sorted(maps.Keys(z.plans)))
	} else if z.noPlan != nil {
		of = z.noPlan.grants
	}
	if of.likely == nil {
		return nil, adminError(badRequest, "zone %q limits no requests of this plan; say which plan is meant: plan=..., one of %q",
			z.name, slices.Sorted(maps.Keys(z.plans)))
	}
	return of.likely, nil
}

// resetKey forgets what a key has used, also what this Caddy has counted in place of the
// store.
func resetKey(c *adminCall) error {
	if err := c.known("key", "key_base64", "part", "plan"); err != nil {
		return err
	}
	key, err := c.key()
	if err != nil {
		return err
	}
	z := c.zone
	reset := func(ctx context.Context, s store.Store) error {
		for _, rule := range z.rules() { // plans that count differently have states of their own
			if err := s.Reset(ctx, rule, key); err != nil {
				return err
			}
		}
		return nil
	}
	if z.local != nil {
		if err := z.local.using(c, reset); err != nil {
			return err
		}
	}
	if err := z.kept.using(c, reset); err != nil {
		return z.unanswered(err)
	}
	c.WriteHeader(http.StatusNoContent)
	return nil
}

// adminTimeout bounds what a store may take for the admin API, beside its own timeout.
const adminTimeout = 10 * time.Second

// using has something done with the store.
func (l *lease) using(c *adminCall, do func(context.Context, store.Store) error) error {
	u, err := l.begin()
	if err != nil {
		return err
	}
	defer u.end()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.request.Context()), adminTimeout)
	defer cancel()
	return do(ctx, u.shared)
}

// unanswered says that the store did not answer, and what that means.
func (z *runningZone) unanswered(err error) error {
	means := map[string]string{
		allowOnError: "the zone lets all requests pass", denyOnError: "the zone answers 503 to all requests",
		localOnError: "each Caddy counts for itself",
	}[z.onStoreError]
	return adminError(http.StatusServiceUnavailable, "%s does not answer: %w; meanwhile %s (on_store_error %s)",
		describe(z.kept.backend), err, means, z.onStoreError)
}

// key reads which key is meant: to the byte, or as the values of the placeholders that
// the zone makes keys of.
func (c *adminCall) key() (string, error) {
	key, encoded, parts := len(c.query["key"]), len(c.query["key_base64"]), min(1, len(c.query["part"]))
	if key+encoded+parts > 1 {
		return "", adminError(badRequest, "say once which key: key, key_base64 or part")
	}
	template := c.zone.Zone.key
	switch {
	case key > 0:
		return template.given(c.query.Get("key")), nil
	case encoded > 0:
		key, err := base64.StdEncoding.DecodeString(c.query.Get("key_base64"))
		if err != nil {
			return "", adminError(badRequest, "key_base64: %w; percent-encode + / and =", err)
		}
		return string(key), nil
	case parts > 0:
		key, err := template.fill(c.query["part"])
		if err != nil {
			return "", adminError(badRequest, "zone %q, key %q: %w", c.zone.name, c.zone.Key, err)
		}
		return key, nil
	case template.varies():
		return "", adminError(badRequest, "say which key of zone %q, whose key is %q: ?key=..., percent-encoded, or ?key_base64=..., or ?part=... for each placeholder",
			c.zone.name, c.zone.Key)
	}
	return template.fill(nil)
}

// number reads a parameter.
func (c *adminCall) number(name string, usual, most int64) (int64, error) {
	text := c.query.Get(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > most {
		return 0, adminError(badRequest, "%s must be from 1 to %d, got %q", name, most, text)
	}
	return n, nil
}
