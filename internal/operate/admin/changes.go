package admin

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/logging"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/peek"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/running"
	"github.com/seed-161337e5/caddyratelimit/internal/request/key"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// resetKey resets a key under all limits of the zone that this instance knows of, in the store and in
// the local memory that replaces it. If limits come from placeholders there may be other
// states: the name of a state has the limit, so finding all states of a key would mean looking at
// all keys.
func resetKey(c *adminCall) (any, error) {
	key, err := c.readKey()
	if err != nil {
		return nil, err
	}
	z, of := c.zone, store.Selector{Key: key}
	return c.change(of, func(ctx context.Context, s store.Store, was *standing) (answer adminapi.Reset, err error) {
		var held int64
		used := z.HasUnknownStates()
		reset := func(ctx context.Context, s store.Store) error {
			for _, rule := range statesOf(z, key) {
				d, err := peek.One(ctx, s, store.Check{Rule: rule, Key: key, Cost: 1, Peek: true})
				if err != nil {
					return err
				}
				if config.CountsSlots(rule.Algorithm().Name()) {
					held += max(0, d.Quota-d.Remaining)
				}
				used = used || d.Remaining < d.Quota
				if err := s.Reset(ctx, rule, key); err != nil {
					return err
				}
			}
			return nil
		}
		if z.Local != nil {
			err = peek.WithStore(ctx, z.Local, reset)
		}
		if err == nil {
			err = reset(ctx, s)
		}
		if err != nil {
			return answer, err
		}
		if answer.Unchanged = !used && !was.Punished(); !answer.Unchanged {
			c.changed("reset", key, "", "")
		}
		answer.Warning = warning(
			when(!used, "it had used nothing"), c.refusal(of),
			when(held > 0, fmt.Sprintf("running requests of this key are no longer counted (%d): "+
				"until they end, more requests can run at once than the limit allows", held)),
			when(z.HasUnknownStates(), fmt.Sprintf("the limits of zone %q come from placeholders, so the key may have several "+
				"counters: only those of limits that recent requests have brought to this instance, since its config was loaded, "+
				"were reset; if the key is still refused, reset it again after its next request to this instance", z.Name)),
		)
		return answer, nil
	})
}

// statesOf returns the rules under which the zone may keep states of a key, with those of the network that decides about it.
func statesOf(z *running.Zone, name string) []*store.Rule {
	rules, n := z.States(), networksOf(z).Find(key.ParseAddress(name))
	if n == nil || n.Override.Kind != store.KindLimit {
		return rules
	}
	for _, rule := range z.Rules() {
		if made := rule.Overruled(&n.Override); made != nil &&
			!slices.ContainsFunc(rules, func(r *store.Rule) bool { return r.ID() == made.ID() }) {
			rules = append(rules, made)
		}
	}
	return rules
}

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

// changed logs what the call has changed of a key.
func (c *adminCall) changed(action, key, what, note string) {
	fields := []zap.Field{zap.String("by", whoAsks(c.request)), zap.String("zone", c.zone.Name)}
	if note != "" {
		fields = append(fields, zap.String("note", note))
	}
	if c.zone.LogKey {
		fields = append(fields, zap.String("key", logging.Key(peek.KeyText(c.zone.Template, key, len(key)).Key)))
	}
	running.LogChange(action, what, fields...)
}

// whoAsks says who sends a request to the admin API, by its address. On a Unix socket it is "local".
func whoAsks(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil && host != "" {
		return host
	}
	return "local"
}

// describeChange says in words what an override does.
func describeChange(rule *store.Rule, o *store.Override) string {
	text := o.Kind.String()
	if o.Kind == store.KindLimit {
		text = peek.DescribeLimit(rule, o.Limit, true)
	}
	if o.For > 0 {
		text += " for " + duration.Format(o.For)
	}
	return text
}
