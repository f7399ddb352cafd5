package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// ruled checks each request to a zone in which networks decide: it meets the limit, the ban or the exemption that
// the smallest network has then. What an instance may not know of, or what may have ended, is not checked.
func (h *History) ruled() {
	if h.Plan.Addresses == 0 || h.hasLost() || len(h.clocks) > 1 || h.Plan.has(machines) {
		return // Redis may forget what operators do, or an instance may not learn of it in time
	}
	for i := range h.Verdicts {
		v := &h.Verdicts[i]
		for zone := range h.Plan.Zones {
			t := h.treated(v, zone)
			if t == nil {
				continue
			}
			if by, known := h.decides(v, zone); known && !t.by(&by, h.Plan.ownLimits(zone)) {
				h.wrong("client %d in zone %d, key %d: %v, which should be by %v", v.Event, zone, h.Plan.Events[v.Event].Key, t, by)
			}
		}
	}
}

// ruling is what an operator has set for a network.
type ruling struct {
	kind       store.Kind    // KindNone: no network decides
	limit      int64         // of KindLimit
	ends, over time.Duration // when it ends at the earliest and at the latest; 0: it does not
}

func (r ruling) String() string {
	if r.kind == store.KindNone {
		return "the zone"
	}
	return fmt.Sprintf("%v %d until %v", r.kind, r.limit, r.ends)
}

// decides returns which ruling decides about a request in a zone: that of the smallest network around its key which has one, unless
// the key has an override. It reports whether that is known.
func (h *History) decides(v *Verdict, zone int) (by ruling, known bool) {
	e := &h.Plan.Events[v.Event]
	levels := []func(d *Deed) bool{func(d *Deed) bool {
		return d.Zone == zone && d.Key == e.Key && slices.Contains([]Kind{Override, Clear, Unban}, d.Kind)
	}}
	for number := maxKeys - 1; number >= 0; number-- {
		if h.Plan.network(number).Contains(h.Plan.prefix(e.Key).Addr()) {
			levels = append(levels, (&Known{Zone: zone, Number: number}).about)
		}
	}
	for _, about := range levels {
		if by, holds, known := h.holding(about, v); holds || !known {
			return by, known
		}
	}
	return ruling{}, true
}

// holding returns what was set last by some deeds, and whether it holds for a request. It reports whether that is known: each of
// them is done, before the next one began, and known to the instance.
func (h *History) holding(about func(d *Deed) bool, v *Verdict) (r ruling, holds, known bool) {
	var last *Deed
	for i := range h.Deeds {
		d := &h.Deeds[i]
		if !about(d) || d.Began > v.looked() {
			continue
		}
		// An unban ends a ban, and nothing else.
		if d.Failure != "" || d.Kind == Unban || !h.isKnown(d, v) || last != nil && d.Began <= last.Ended {
			return ruling{}, false, false
		}
		last = d
	}
	if last == nil || last.Kind == Clear || last.Kind == ClearNetwork {
		return ruling{}, false, true
	}
	e := &h.Plan.Events[last.Event]
	r.kind, r.limit = e.sets()
	if e.For > 0 {
		r.ends, r.over = last.Began+e.For-timeout, last.Ended+e.For+timeout
	}
	switch {
	case e.For > 0 && v.Began > r.over:
		return ruling{}, false, true
	case e.For > 0 && v.looked() >= r.ends:
		return ruling{}, false, false
	}
	return r, true, true
}

// looked is until when an instance looks which network decides.
func (v *Verdict) looked() time.Duration { return min(v.Ended, v.Began+timeout) }

const (
	knownWithin = 5 * time.Second
	calmWithin  = 10 * time.Second
	answersIn   = 100 * time.Millisecond
)

// isKnown reports whether an instance knows of a change for sure when a request comes to it.
func (h *History) isKnown(d *Deed, v *Verdict) bool {
	if d.Ended >= v.Began {
		return false
	}
	calm := time.Duration(-1)
	for i := range h.Plan.Events {
		if e := &h.Plan.Events[i]; operations[e.Kind].sort.trouble() && h.began+e.At <= v.Began {
			calm = max(calm, h.began+e.At+e.For)
		}
	}
	switch {
	case calm >= 0:
		return v.Began > max(d.Ended, calm)+calmWithin
	case h.Plan.Events[d.Event].Instance == v.Instance:
		return true
	}
	return v.Began > d.Ended+knownWithin+answersIn
}

// treatment is what a zone has done with a request.
type treatment struct {
	kind  store.Kind
	asked bool  // the store was asked, and no more is known
	quota int64 // of the limit that it has met
	wait  time.Duration
	at    time.Duration
}

// treated returns what a zone that takes networks has done with a request; nil if that says nothing of networks.
func (h *History) treated(v *Verdict, zone int) *treatment {
	e, z := &h.Plan.Events[v.Event], &h.Plan.Zones[zone]
	if !z.Overrides || v.Err != "" || e.Zone >= 0 && e.Zone != zone || e.Sort == exempt {
		return nil
	}
	for _, u := range v.Unasked {
		switch {
		case u.Zone == zone && u.Banned:
			return &treatment{kind: store.KindBanned, wait: u.Wait, at: v.Began}
		case u.Zone == zone || u.Zone < zone && !u.DryRun:
			return nil
		}
	}
	answers := func(some func(a *Answer) bool) bool {
		return slices.ContainsFunc(h.Answers, func(a Answer) bool {
			return a.Event == v.Event && a.Zone == zone && a.Began >= v.Began && some(&a)
		})
	}
	// An instance that decides alone has a share of the limit, also for who leaves while it makes them wait.
	alone := v.Outcome == outcome.Local || v.Outcome == outcome.Abandoned && answers(func(a *Answer) bool { return a.Failure != "" })
	for _, p := range v.Parts {
		if p.Zone == zone && !alone {
			return &treatment{quota: p.Quota}
		}
	}
	if answers(func(*Answer) bool { return true }) {
		return &treatment{asked: true}
	}
	if v.Outcome != outcome.Allowed {
		return nil
	}
	return &treatment{kind: store.KindExempt}
}

func (t *treatment) String() string {
	if t.kind != store.KindNone {
		return fmt.Sprintf("%v for %v", t.kind, t.wait)
	}
	return fmt.Sprintf("meets a limit of %d", t.quota)
}

// by reports whether a ruling does that, in a zone with some limits of its own. A ban tells when it ends.
func (t *treatment) by(r *ruling, own []int64) bool {
	switch {
	case t.kind == store.KindBanned && r.kind == store.KindBanned && r.ends == 0:
		return t.wait == algorithms.Never
	case t.kind == store.KindBanned && r.kind == store.KindBanned:
		return t.wait >= r.ends-t.at-timeout && t.wait <= r.over-t.at
	case t.kind != store.KindNone || r.kind == store.KindBanned || r.kind == store.KindExempt:
		return t.kind == r.kind
	case t.asked:
		return true
	case r.kind == store.KindLimit:
		return t.quota == r.limit
	}
	return slices.Contains(own, t.quota)
}

// ownLimits are those that a zone has without networks.
func (p *Plan) ownLimits(zone int) []int64 {
	all := p.limits(zone)
	return all[:len(all)-len(p.overruled(zone))]
}
