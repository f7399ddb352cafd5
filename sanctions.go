package caddyratelimit

import (
	"errors"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Ban says when a key that keeps hammering is refused for a while without being counted.
type Ban struct {
	// How long the first ban lasts: from 1s to 3660d. Required.
	Duration caddy.Duration `json:"duration,omitempty"`

	// How many refusals by the zone's limit lead to a ban. Required.
	After int64 `json:"after,omitempty"`

	// The time within which they do, counted from the first of them: from 1s to 3660d.
	// Required.
	Window caddy.Duration `json:"window,omitempty"`

	// Each ban is twice as long as the last one, up to this, unless so much time has passed
	// since that one was over. Default: duration, so that all bans are alike.
	UpTo caddy.Duration `json:"up_to,omitempty"`
}

func (b *Ban) rule() *store.Ban {
	return &store.Ban{For: time.Duration(b.Duration), After: b.After, Within: time.Duration(b.Window), UpTo: time.Duration(b.UpTo)}
}

// provisionSanctions makes ready what stands above the limit for single keys.
func (z *Zone) provisionSanctions() error {
	if !z.Overrides && z.Ban == nil {
		return nil
	}
	z.live.Sanctions = &store.Sanctions{Settings: z.Overrides}
	if z.Ban == nil {
		return nil
	}
	z.live.Sanctions.Ban = z.Ban.rule()
	if err := z.live.Sanctions.Ban.Validate(); err != nil {
		return err
	}
	for _, l := range z.live.Limits() {
		if l.MaxWait > 0 && l.Mode != algorithms.ModeQueue {
			return errors.New("ban and max_wait exclude each other, except in a queue: a request that is held would count as refused each time it asks again")
		}
	}
	return nil
}

// describe says what differs from no ban.
func (b *Ban) describe() string {
	text := " ban " + duration.Format(time.Duration(b.Duration)) + " after " + strconv.FormatInt(b.After, 10) + " in " + duration.Format(time.Duration(b.Window))
	if b.UpTo != 0 {
		text += " up_to " + duration.Format(time.Duration(b.UpTo))
	}
	return text
}

// dropExempt takes the zones out of the attempt from which the request's key is exempt:
// they have not decided, and nothing was charged.
func (a *attempt) dropExempt() {
	for i := range a.decisions {
		if a.decisions[i].Exempt {
			a.keep(func(i int) bool {
				if a.decisions[i].Exempt {
					a.note(i, outcome.Exempt, stats.Untimed)
				}
				return !a.decisions[i].Exempt
			})
			return
		}
	}
}

// keep reduces the attempt to some of its zones.
func (a *attempt) keep(which func(i int) bool) {
	n, firm := 0, 0
	for i := range a.zones {
		if !which(i) {
			continue
		}
		a.zones[n], a.grants[n], a.checks[n], a.decisions[n] = a.zones[i], a.grants[i], a.checks[i], a.decisions[i]
		n++
		if i < a.firm {
			firm++
		}
	}
	clear(a.zones[n:])
	clear(a.grants[n:])
	clear(a.checks[n:])
	a.zones, a.grants, a.checks, a.decisions, a.firm = a.zones[:n], a.grants[:n], a.checks[:n], a.decisions[:n], firm
}
