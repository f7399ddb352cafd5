package admin

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// expiryInterval is how often zones that expire are told the time at least, because the clock may be set.
const expiryInterval = time.Minute

// Expire ends the limits of zones at their time, and logs that. It logs a week before, too. It returns when ctx is done.
func (c *Config) Expire(ctx context.Context, log *zap.Logger) {
	var expiring []*zone.Zone
	for _, h := range c.All() {
		for _, z := range h.Zones {
			if z.Expires != nil {
				expiring = append(expiring, z)
			}
		}
	}
	if expiring == nil {
		return
	}
	soon := make([]bool, len(expiring)) // what is due at first was logged when the config was loaded
	for i, z := range expiring {
		soon[i], _ = z.Expires.Due(time.Now())
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		next, now := expiryInterval, time.Now()
		for i, z := range expiring {
			due, over := z.Expires.Due(now)
			if changed := z.SetTime(now); changed || due && !soon[i] {
				log.Warn(z.Expires.State(now), z.LifeFields()...)
			}
			if soon[i] = due; !over {
				next = min(next, z.Expires.At.Sub(now))
			}
		}
		timer.Reset(next)
	}
}

// lifeOf says why a zone is there, and until when.
func lifeOf(z *zone.Zone) adminapi.Life {
	life := adminapi.Life{Note: z.Note}
	if e := z.Expires; e != nil {
		now := time.Now()
		soon, over := e.Due(now)
		life.Expires = &adminapi.Expiry{At: e.At.UTC(), Then: e.Then, Over: over, Due: soon || over, State: e.State(now)}
	}
	return life
}

// life says why the zone is there, and until when. Handlers may differ in that.
func (z *runningZone) life() adminapi.Life {
	var life adminapi.Life
	var notes []string
	for _, use := range z.uses {
		of := lifeOf(use)
		if of.Note != "" && !slices.Contains(notes, of.Note) {
			notes = append(notes, of.Note)
		}
		if life.Expires == nil || of.Expires != nil && of.Expires.At.Before(life.Expires.At) {
			life.Expires = cmp.Or(of.Expires, life.Expires)
		}
	}
	life.Note = strings.Join(notes, "; ")
	return life
}
