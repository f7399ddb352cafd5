package caddyratelimit

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Ban refuses all requests of a key for some time, if the key continues to send requests although it
// is refused. A banned key is refused without being counted.
type Ban struct {
	// How long the first ban lasts, from 1s to 3660d. Required.
	Duration caddy.Duration `json:"duration,omitempty"`

	// The number of refusals by the zone's limit that lead to a ban, at least 1. Required.
	After int64 `json:"after,omitempty"`

	// The time in which these refusals must happen, counted from the first one, from 1s to 3660d.
	// Required.
	Window caddy.Duration `json:"window,omitempty"`

	// The longest ban, at least duration and at most 3660d. Each ban is twice as long as the one before, up to
	// this, unless this much time has passed since that one ended. Default: duration, so all bans are equally long.
	UpTo caddy.Duration `json:"up_to,omitempty"`
}

// rule returns the ban as stores have it. It may be nil.
func (b *Ban) rule() *store.Ban {
	if b == nil {
		return nil
	}
	return &store.Ban{For: time.Duration(b.Duration), After: b.After, Within: time.Duration(b.Window), UpTo: time.Duration(b.UpTo)}
}

// checkKeyRules checks what overrules the limit for single keys.
func checkKeyRules(s *zone.Spec) error {
	if s.KeyRules == nil || s.KeyRules.Ban == nil {
		return nil
	}
	if err := s.KeyRules.Ban.Validate(); err != nil {
		return err
	}
	for _, l := range s.Limits() {
		if l.MaxWait > 0 && l.Mode != algorithms.ModeQueue {
			return errors.New("ban and max_wait exclude each other, except in a queue: each retry of a waiting request would count as a refusal")
		}
	}
	return nil
}

// parseBan parses <duration> after <n> refusals in <duration> [up_to <duration>].
func parseBan(d *caddyfile.Dispenser, z *Zone) (string, error) {
	args := d.RemainingArgs()
	if len(args) != 6 && len(args) != 8 || args[1] != "after" || args[3] != "refusals" || args[4] != "in" ||
		len(args) == 8 && args[6] != "up_to" {
		return "", d.Errf("ban takes <duration> after <n> refusals in <duration> [up_to <duration>], got '%s'", strings.Join(args, " "))
	}
	z.Ban = new(Ban)
	var err error
	if z.Ban.After, err = strconv.ParseInt(args[2], 10, 64); err != nil {
		return "", d.Errf("ban after '%s' must be a whole number", args[2])
	}
	for _, part := range []struct {
		at int
		to *caddy.Duration
	}{{0, &z.Ban.Duration}, {5, &z.Ban.Window}, {7, &z.Ban.UpTo}} {
		if part.at >= len(args) {
			break
		}
		v, err := option.ParseDuration(args[part.at])
		if err != nil {
			return "", d.Errf("invalid ban duration '%s': %v", args[part.at], err)
		}
		*part.to = caddy.Duration(v)
	}
	return strings.Join(args, " "), option.Block(d, "ban", "ban ", nil)
}
