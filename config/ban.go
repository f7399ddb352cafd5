package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Ban refuses all requests of a key for some time, if the key continues to send requests although it
// is refused. A banned key is refused without being counted.
type Ban struct {
	// How long the first ban lasts, from 1s to 3660d. Required.
	Duration caddy.Duration `json:"duration,omitempty" range:"1s..3660d"`

	// The number of refusals by the zone's limit that lead to a ban, from 1 to 1000000000000. Required.
	After int64 `json:"after,omitempty" range:"1..1000000000000" unit:"refusals"`

	// The time in which these refusals must happen, counted from the first one, from 1s to 3660d.
	// Required.
	Window caddy.Duration `json:"window,omitempty" range:"1s..3660d"`

	// The longest ban, from 1s to 3660d, and not less than duration. Each ban is twice as long as the one before, up to
	// this, unless this much time has passed since that one ended. Default: duration, so all bans are equally long.
	UpTo caddy.Duration `json:"up_to,omitempty" range:"1s..3660d" default:"=duration"`
}

// banSyntax are the options of a ban in the order of its line, and the words between them, which begin with "=".
var banSyntax = [...]string{"duration", "=after", "after", "=refusals", "=in", "window", "=up_to", "up_to"}

// Parse implements [option.Value]: <duration> after <n> refusals in <duration> [up_to <duration>].
func (b *Ban) Parse(args []string, _ *option.Field) error {
	if len(args) != len(banSyntax) && len(args) != len(banSyntax)-2 {
		return option.ErrWrong
	}
	*b = Ban{}
	for i, arg := range args {
		if word, fixed := strings.CutPrefix(banSyntax[i], "="); fixed && arg != word {
			return option.ErrWrong
		} else if fixed {
			continue
		}
		if err := option.Set(b, banSyntax[i], args[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// String describes the ban in the words of a Caddyfile.
func (b *Ban) String() string {
	text := fmt.Sprintf("%s after %d refusals in %s", duration.Format(time.Duration(b.Duration)), b.After, duration.Format(time.Duration(b.Window)))
	if b.UpTo != 0 {
		text += " up_to " + duration.Format(time.Duration(b.UpTo))
	}
	return text
}

// rule returns the ban as stores have it. It may be nil.
func (b *Ban) rule() *store.Ban {
	if b == nil {
		return nil
	}
	return &store.Ban{For: time.Duration(b.Duration), After: b.After, Within: time.Duration(b.Window), UpTo: time.Duration(b.UpTo)}
}

// check checks what a ban needs.
func (b *Ban) check() error {
	if b == nil {
		return nil
	}
	if b.Duration == 0 || b.After == 0 || b.Window == 0 {
		return errors.New("ban needs duration, after and window")
	}
	if b.UpTo != 0 && b.UpTo < b.Duration {
		return fmt.Errorf("ban: up_to must be at least the duration, %s, got %s",
			duration.Format(time.Duration(b.Duration)), duration.Format(time.Duration(b.UpTo)))
	}
	return nil
}
