package admin

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/feed"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

const (
	// watchPulse is how often decisions are sent, and heartbeat how many pulses later a comment keeps an idle stream alive.
	watchPulse = 100 * time.Millisecond
	heartbeat  = 150

	defaultRate = 100
	maxRate     = 1000
)

// streamDecisions sends decisions as server-sent events.
func streamDecisions(c *adminCall) (any, error) {
	rate, wants, err := c.readSubscription()
	if err != nil {
		return nil, err
	}
	v, err := subscribe(wants)
	if err != nil {
		return nil, err
	}
	defer v.Unsubscribe()
	zones := runningZones()
	n, left, skipped := 0, rate, uint64(0) // left is how many more decisions this second may have
	return nil, c.stream(watchPulse, func(to *events) bool {
		if time.Duration(n)*watchPulse%time.Second == 0 {
			left = rate
		}
		some, missed := v.Take()
		left, skipped = max(0, left-len(some)), skipped+missed
		v.Ask(min(left, feed.Buffer))
		for _, d := range some {
			d.Skipped, skipped = skipped, 0
			split(&d, zones)
			if !to.event("decision", d) {
				return false
			}
		}
		n++
		return n%heartbeat != 1 || to.comment("decisions follow")
	})
}

// split adds the parts of its key to a decision of one of the zones.
func split(d *adminapi.Decision, zones []*runningZone) {
	if i := slices.IndexFunc(zones, func(z *runningZone) bool { return z.Name == d.Zone }); i >= 0 {
		d.KeyText = zones[i].split(d.KeyText)
	}
}

// readSubscription reads which decisions to send, and how many per second.
func (c *adminCall) readSubscription() (rate int, wants func(zone, key string, o outcome.Outcome) bool, err error) {
	most, err := c.intParameter("rate", defaultRate, 1, maxRate)
	if err != nil {
		return 0, nil, err
	}
	all := [outcome.Count]bool{}
	for name := range strings.SplitSeq(c.query.Get("outcome"), ",") {
		named, ok := outcome.Named(name)
		if !ok && name != "" {
			names := append(outcome.Names[:], outcome.NameRefused, outcome.NameErrors)
			return 0, nil, adminError(badRequest, "unknown outcome %q, must be one of %s%s", name, strings.Join(names, ", "), suggest.Hint(name, names))
		}
		for o, is := range named {
			all[o] = all[o] || is
		}
	}
	any := all == [outcome.Count]bool{}
	named, err := c.readKeyQuery()
	if err != nil {
		return 0, nil, err
	}
	key, ofKey := "", !named.isEmpty()
	if ofKey && c.zone == nil {
		return 0, nil, adminError(badRequest, "the zone of the key is missing: add zone=...")
	}
	if ofKey {
		if key, err = named.keyIn(c.zone); err != nil {
			return 0, nil, err
		}
	}
	return int(most), func(z, k string, o outcome.Outcome) bool {
		return (any || all[o]) && (c.zone == nil || z == c.zone.Name) && (!ofKey || k == key)
	}, nil
}
