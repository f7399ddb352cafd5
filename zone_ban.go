package caddyratelimit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
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

	// When the network of banned keys is banned as well. Needs a key that is the client's address, and overrides. Default: never.
	Widen *Widen `json:"widen,omitempty"`
}

// Widen bans a network for the duration of a ban, if several of its keys are banned at once and hardly any other key of it passes.
// All instances that share the store count together. Each network is first watched for a minute.
type Widen struct {
	// The number of keys of a network that must be banned at once, from 2 to 1000. Required.
	From int `json:"from,omitempty"`

	// The number of leading bits of an IPv4 network, from 24 to 31, and fewer than those of a key. Default: 24.
	IPv4Prefix int `json:"ipv4_prefix,omitempty"`

	// The number of leading bits of an IPv6 network, from 48 to 127, and fewer than those of a key. Default: 48.
	IPv6Prefix int `json:"ipv6_prefix,omitempty"`

	// The number of keys of the network that may be innocent, from 0 to 1000. If more came in ten minutes that the zone did
	// not refuse, the network is not banned. Default: 0.
	Innocent int `json:"innocent,omitempty"`

	// Whether no network is banned, and only the log and doctor tell which ones would be. Default: false.
	DryRun bool `json:"dry_run,omitempty"`
}

// rule returns the ban as stores have it. It may be nil.
func (b *Ban) rule() *store.Ban {
	if b == nil {
		return nil
	}
	return &store.Ban{For: time.Duration(b.Duration), After: b.After, Within: time.Duration(b.Window), UpTo: time.Duration(b.UpTo)}
}

// widen returns when the ban widens. It may be nil.
func (b *Ban) widen() *zone.Widen {
	if b == nil || b.Widen == nil {
		return nil
	}
	w := b.Widen
	return &zone.Widen{
		Widen: store.Widen{From: w.From, Innocent: w.Innocent, For: time.Duration(b.Duration)},
		IPv4:  cmp.Or(w.IPv4Prefix, widest4), IPv6: cmp.Or(w.IPv6Prefix, widest6), DryRun: w.DryRun,
	}
}

const (
	// widest4 and widest6 are the lengths of the largest networks to which a ban widens.
	widest4, widest6 = 24, 48

	// minWidened is the shortest ban that widens: most of it is left when a network was watched for a minute.
	minWidened = 5 * time.Minute
)

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
	return checkWiden(s)
}

// checkWiden checks when the ban of keys widens to their network.
func checkWiden(s *zone.Spec) error {
	w := s.Widen
	switch {
	case w == nil:
		return nil
	case !s.Template.IsClient():
		return fmt.Errorf("ban: widen needs a key that is the client's address and nothing else: write key {client_ip}, in JSON {http.vars.client_ip}, got %q", s.Key)
	case !s.KeyRules.Overrides:
		return errors.New("ban: widen needs overrides, with which operators see and end the ban of a network: add overrides")
	case s.KeyRules.Ban.For < minWidened:
		return fmt.Errorf("ban: widen needs a duration of at least %s, because a network is watched for a minute before it is banned, got %s",
			duration.Format(minWidened), duration.Format(s.KeyRules.Ban.For))
	}
	for _, p := range []struct {
		name              string
		bits, least, keys int
	}{{"ipv4", w.IPv4, widest4, cmp.Or(s.Template.Prefixes.IPv4, 32)}, {"ipv6", w.IPv6, widest6, cmp.Or(s.Template.Prefixes.IPv6, 128)}} {
		switch {
		case p.keys <= p.least:
			return fmt.Errorf("ban: widen has no larger network than the keys of the zone, whose %s_prefix is %d: leave out widen, or write a longer %s_prefix", p.name, p.keys, p.name)
		case p.bits < p.least || p.bits >= p.keys:
			return fmt.Errorf("ban: widen to a network of %s must be from /%d to /%d, because a key has %d bits, got /%d", p.name, p.least, p.keys-1, p.keys, p.bits)
		}
	}
	return w.Validate()
}

// checkWidens returns an error if bans widen, and the store does not count those of networks.
func (h *Handler) checkWidens() error {
	if _, counts := h.store.Store.Store.(store.Widener); counts {
		return nil
	}
	for _, z := range h.zones {
		if z.Widen != nil {
			return fmt.Errorf("zone %q: ban: widen needs a store that counts bans of networks, such as memory or redis, and %s does not: leave out widen",
				z.Name, pool.Describe(h.store.Backend))
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
	return strings.Join(args, " "), option.Block(d, "ban", "ban ", map[string]option.Option{
		"widen": {Parse: func() (string, error) { return parseWiden(d, z.Ban) }},
	})
}

// parseWiden parses [/<ipv4 prefix> [/<ipv6 prefix>]] from <n> [innocent <n>] [dry_run].
func parseWiden(d *caddyfile.Dispenser, b *Ban) (string, error) {
	all := d.RemainingArgs()
	w, rest := new(Widen), all
	for _, to := range []*int{&w.IPv4Prefix, &w.IPv6Prefix} {
		if len(rest) == 0 || !strings.HasPrefix(rest[0], "/") {
			break
		}
		var err error
		if *to, err = strconv.Atoi(rest[0][1:]); err != nil || *to <= 0 {
			return "", d.Errf("ban widen '%s' must be the length of a prefix, such as /24", rest[0])
		}
		rest = rest[1:]
	}
	for _, part := range []struct {
		name string
		to   *int
	}{{"from", &w.From}, {"innocent", &w.Innocent}} {
		if len(rest) < 2 || rest[0] != part.name {
			continue
		}
		var err error
		if *part.to, err = strconv.Atoi(rest[1]); err != nil {
			return "", d.Errf("ban widen %s '%s' must be a whole number", part.name, rest[1])
		}
		rest = rest[2:]
	}
	if len(rest) == 1 && rest[0] == "dry_run" {
		w.DryRun, rest = true, nil
	}
	if len(rest) > 0 || !slices.Contains(all, "from") {
		return "", d.Errf("ban widen takes [/<ipv4 prefix> [/<ipv6 prefix>]] from <n> [innocent <n>] [dry_run], got '%s'", strings.Join(all, " "))
	}
	b.Widen = w
	return strings.Join(all, " "), nil
}
