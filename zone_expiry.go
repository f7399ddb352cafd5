package caddyratelimit

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/limit"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// parseExpires parses <date or time> [then ignore | dry_run | keep].
func parseExpires(d *caddyfile.Dispenser, z *Zone) (string, error) {
	args := d.RemainingArgs()
	if len(args) != 1 && len(args) != 3 || len(args) == 3 && args[1] != "then" {
		return "", d.Errf("expires takes <date or time> [then ignore|dry_run|keep], got '%s'", strings.Join(args, " "))
	}
	z.Expires = &Expires{At: args[0]}
	if len(args) == 3 {
		z.Expires.Then = args[2]
	}
	return strings.Join(args, " "), nil
}

// checkNote checks the note of a zone.
func (z *Zone) checkNote() error {
	switch {
	case len(z.Note) > store.MaxNote:
		return fmt.Errorf("note must be at most %d bytes, got %d", store.MaxNote, len(z.Note))
	case !utf8.ValidString(z.Note) || strings.ContainsFunc(z.Note, unicode.IsControl):
		return fmt.Errorf("note must be one line of text, got %q", z.Note)
	}
	return nil
}

// expiry checks when the limit ends, and what comes then. It is nil for a limit that does not end.
func (z *Zone) expiry() (*zone.Expiry, error) {
	if z.Expires == nil {
		return nil, z.checkNote()
	}
	at, err := time.Parse(time.DateOnly, z.Expires.At)
	if err != nil {
		if at, err = time.Parse(time.RFC3339, z.Expires.At); err != nil {
			return nil, fmt.Errorf("expires must be a date such as 2026-12-01, or a time such as 2026-12-01T18:00:00+01:00, got %q", z.Expires.At)
		}
	}
	then := cmp.Or(z.Expires.Then, zone.ThenIgnore)
	if err := oneOf("expires: then", &then, zone.ThenIgnore, zone.ThenDryRun, zone.ThenKeep); err != nil {
		return nil, err
	}
	if then == zone.ThenDryRun {
		switch {
		case z.Algorithm == limit.Adaptive:
			return nil, errors.New("algorithm adaptive has no dry_run, so the zone cannot become one when it expires: write then ignore, or then keep")
		case z.DryRun || z.Enforce != nil && *z.Enforce == 0:
			return nil, errors.New("the zone is a dry run, so expires has nothing to change: write then ignore, or then keep")
		}
	}
	z.Expires = &Expires{At: z.Expires.At, Then: then} // filled in
	return &zone.Expiry{At: at, Then: then}, z.checkNote()
}

// warnOfExpiry sets the time of a zone that is loaded, and warns if its limit has ended or ends soon. The
// warning does not stay with the config, because it changes with time.
func warnOfExpiry(z *zone.Zone, log *zap.Logger) {
	now := time.Now()
	z.SetTime(now)
	if z.Expires == nil {
		return
	}
	if soon, over := z.Expires.Due(now); soon || over {
		log.Warn(z.Expires.State(now), z.LifeFields()...)
	}
}
