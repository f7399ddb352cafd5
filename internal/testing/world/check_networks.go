package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/store"
)

var _ = promise("a network decides about its requests while its override holds, and no longer", (*History).ruled)

// ruled checks each request to a zone in which networks decide: it meets the limit, the ban or the exemption that
// the smallest network has then. While an instance may not know of a change, both are right.
func (h *History) ruled() (violations []string) {
	if h.Plan.Addresses == 0 {
		return nil
	}
	for i := range h.Verdicts {
		v := &h.Verdicts[i]
		for zone := range h.Plan.Zones {
			t := h.treated(v, zone)
			if t == nil {
				continue
			}
			rules := h.mayDecide(v, zone)
			if !slices.ContainsFunc(rules, func(r ruling) bool { return t.by(&r, h.Plan.ownLimits(zone)) }) {
				violations = append(violations, fmt.Sprintf("client %d in zone %d, key %d: %v, which should be by one of %v", v.Event, zone, h.Plan.Events[v.Event].Key, t, rules))
			}
		}
	}
	return violations
}

// ruling is what holds after an operator has done something to a network or a key.
type ruling struct {
	kind         store.Kind // KindNone: the limit of the zone
	limit        int64      // of KindLimit
	began, ended time.Duration
	ends, over   time.Duration // when it ends at the earliest and at the latest
	clears       bool          // nothing holds after it
	doubtful     bool          // it may not be done, or later
	exception    bool          // it is for one key
	instance     int
}

func (r ruling) String() string {
	if r.kind == store.KindNone {
		return "the zone"
	}
	return fmt.Sprintf("%v %d since %v until %v", r.kind, r.limit, r.ended, r.ends)
}

// rulings are those of what some deeds were done to, in the order in which they ended.
func (h *History) rulings(about func(d *Deed) bool) (all []ruling) {
	for i := range h.Deeds {
		d := &h.Deeds[i]
		if !about(d) {
			continue
		}
		e := &h.Plan.Events[d.Event]
		r := ruling{began: d.Began, ended: d.Ended, ends: forever, over: forever, instance: e.Instance}
		r.doubtful = d.Failure != "" || d.Kind == Unban // which ends a ban, and nothing else
		switch d.Kind {
		case Network:
			r.kind, r.limit = e.sets()
		case Override:
			r.exception = true
		default:
			r.clears = true
		}
		if e.For > 0 && !r.clears {
			r.ends, r.over = d.Began+e.For-timeout, d.Ended+e.For+timeout
		}
		all = append(all, h.loosen(r))
	}
	return all
}

// loosen returns a ruling that may end sooner or later if something may be lost, or a clock may have stepped.
func (h *History) loosen(r ruling) ruling {
	if r.doubtful || h.unsure() {
		r.over = forever
	}
	if len(h.clocks) > 1 && r.ends < forever {
		r.ends = r.began
	}
	return r
}

const forever = 1000 * time.Hour

// levels are the rulings about a request in a zone: those of its key, of the networks around it, the smallest first.
func (h *History) levels(e *Event, zone int) (all [][]ruling) {
	all = append(all, h.rulings(func(d *Deed) bool {
		return d.Zone == zone && d.Key == e.Key && slices.Contains([]Kind{Override, Clear, Unban}, d.Kind)
	}))
	for number := maxKeys - 1; number >= 0; number-- {
		if h.Plan.network(number).Contains(h.Plan.prefix(e.Key).Addr()) {
			all = append(all, h.rulings((&Known{Zone: zone, Number: number}).about))
		}
	}
	return all
}

// mayDecide returns the rulings of which one decides about a request in a zone.
func (h *History) mayDecide(v *Verdict, zone int) (all []ruling) {
	for _, level := range h.levels(&h.Plan.Events[v.Event], zone) {
		some, none := h.mayHold(level, v)
		if all = append(all, some...); !none {
			return all
		}
	}
	return append(all, ruling{})
}

// mayHold returns which rulings of a level may hold for a request, and whether perhaps none does.
func (h *History) mayHold(level []ruling, v *Verdict) (some []ruling, none bool) {
	none = true
	surely := slices.DeleteFunc(slices.Clone(level), func(r ruling) bool { return !h.isKnown(&r, v) })
	if len(surely) > 0 {
		none = false
	}
	for _, r := range level {
		replaced := !r.doubtful && slices.ContainsFunc(surely, func(by ruling) bool { return by.began > r.ended })
		switch {
		case r.began > v.looked() || replaced:
		case r.clears:
			none = true
		case v.Began > r.over && !h.unsure():
			none = true
		default:
			none = none || v.looked() >= r.ends
			some = append(some, r)
		}
	}
	return some, none
}

// looked is until when an instance looks which network decides.
func (v *Verdict) looked() time.Duration { return min(v.Ended, v.Began+timeout) }

// unsure reports whether Redis may forget what operators do, or an instance may not learn of it in time.
func (h *History) unsure() bool {
	return h.hasLost() || len(h.clocks) > 1 || h.Plan.has(machines)
}

const (
	knownWithin = 5 * time.Second
	calmWithin  = 10 * time.Second
	answersIn   = 100 * time.Millisecond
)

// isKnown reports whether an instance knows of a change for sure when a request comes to it.
func (h *History) isKnown(r *ruling, v *Verdict) bool {
	if r.doubtful || r.ended >= v.Began || h.unsure() {
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
		return v.Began > max(r.ended, calm)+calmWithin
	case r.instance == v.Instance:
		return true
	}
	return v.Began > r.ended+knownWithin+answersIn
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
	case t.kind == store.KindBanned && r.kind == store.KindBanned && r.ends == forever:
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
