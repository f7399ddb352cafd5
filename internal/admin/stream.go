package admin

import (
	"context"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/feed"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

const (
	// heartbeat is the interval of comments that keep an idle stream alive.
	heartbeat = 15 * time.Second

	defaultRate = 100
	maxRate     = 1000
)

// streamDecisions sends decisions as server-sent events until the client leaves, another subscriber
// takes its place, or the admin endpoint shuts down, as it does on each reload.
func streamDecisions(c *adminCall) error {
	stores, err := c.readFleet()
	if err != nil {
		return err
	}
	rate, wants, err := c.readSubscription()
	if err != nil {
		return err
	}
	v, err := subscribed(feed.Subscribe(rate, wants))
	if err != nil {
		return err
	}
	defer v.Unsubscribe()

	templates := templatesOf(runningZones())
	to, err := c.beginEvents()
	if err != nil {
		return err
	}
	pulse := time.NewTicker(heartbeat)
	defer pulse.Stop()
	ctx, cancel := context.WithCancel(c.request.Context())
	defer cancel()
	views, told := follow(ctx, stores), make(reports)
	me := ""
	if len(stores) > 0 {
		me = processName()
	}
	for ok := to.comment("decisions follow"); ok; {
		select {
		case s := <-v.Decisions:
			v.MarkActive()
			s.Skipped = v.Skipped.Swap(0)
			templates.split(&s)
			s.Instance = me
			ok = to.event("decision", s)
		case view := <-views:
			for _, d := range told.fresh(view, wants) {
				v.MarkActive()
				ok = ok && to.event("decision", d)
			}
		case <-pulse.C:
			ok = to.comment("")
		case <-to.ended:
			return nil
		case <-to.shutdown:
			return nil
		case <-v.Evicted:
			return nil
		}
	}
	return nil // the answer has begun, so an error cannot be sent
}

// templates are those of keys, by zone.
type templates map[string]*key.Template

func templatesOf(zones []*runningZone) templates {
	t := make(templates, len(zones))
	for _, z := range zones {
		t[z.Name] = z.Template
	}
	return t
}

// split adds the parts of the key to a decision.
func (t templates) split(d *adminapi.Decision) {
	if text, err := d.Bytes(); err == nil && t[d.Zone] != nil {
		d.KeyText = keyText(t[d.Zone], text, max(len(text), d.Truncated))
	}
}

// readSubscription reads which decisions to send, and how many per second.
func (c *adminCall) readSubscription() (rate int64, wants func(zone, key string, o outcome.Outcome) bool, err error) {
	if err := c.checkParameters("zone", "key", "key_base64", "part", "outcome", "rate"); err != nil {
		return 0, nil, err
	}
	if rate, err = c.intParameter("rate", defaultRate, 1, maxRate); err != nil {
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
	zone, ofZone := c.query.Get("zone"), c.query.Has("zone")
	named, err := c.readKeyQuery()
	if err != nil {
		return 0, nil, err
	}
	key, ofKey := "", !named.isEmpty()
	if ofKey && !ofZone {
		return 0, nil, adminError(badRequest, "the zone of the key is missing: add zone=...")
	}
	if ofZone {
		if c.zone, err = findZone(zone); err != nil {
			return 0, nil, err
		}
	}
	if ofKey {
		if key, err = named.keyIn(c.zone); err != nil {
			return 0, nil, err
		}
	}
	return rate, func(z, k string, o outcome.Outcome) bool {
		return (any || all[o]) && (!ofZone || z == zone) && (!ofKey || k == key)
	}, nil
}
