package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// ruling is what operators have set for a key or a network.
type ruling struct {
	kind       store.Kind    // KindNone: nothing
	limit      int64         // of KindLimit
	ends, over time.Duration // when it ends at the earliest and at the latest; 0: it does not
}

func (r ruling) String() string {
	return fmt.Sprintf("%v, %d, until %v", r.kind, r.limit, r.ends)
}

// ruling returns what operators have set for a key or a network of a zone, as it holds from one time to another. It
// reports whether that is known: each of them is done, before the next one began, and who decides knows of it.
func (h *History) ruling(zone, number int, from, to time.Duration, knows func(d *Deed) bool) (r ruling, known bool) {
	var last *Deed
	sure := true
	for i := range h.Deeds {
		d := &h.Deeds[i]
		if d.Zone != zone || d.Key != number || d.Began > to {
			continue
		}
		if d.Failure != "" || !knows(d) {
			return ruling{}, false
		}
		// Of two at a time nobody knows which came first, and an unban or a reset may end a ban, and nothing else.
		together := last != nil && d.Began <= last.Ended
		last, sure = d, !together && (d.Kind == Override || d.Kind == Clear && sure)
	}
	if last == nil || !sure || last.Kind == Clear {
		return ruling{}, sure
	}
	o := last.override()
	r = ruling{kind: o.Kind, limit: o.Limit.Events}
	if o.For == 0 {
		return r, true
	}
	r.ends, r.over = last.Began+o.For-timeout, last.Ended+o.For+timeout
	if from > r.over {
		return ruling{}, true
	}
	return r, to < r.ends
}

// networks checks what the instances know of networks in the end: what was set last, unless Redis may have lost it.
// What an instance knows without a cause is wrong in any case.
func (h *History) networks() {
	for i := range h.Networks {
		known := &h.Networks[i]
		caused := slices.ContainsFunc(h.Deeds, func(d Deed) bool {
			o := d.override()
			return d.Zone == known.Zone && d.Key == known.Key && known.Kind == o.Kind && known.Limit == o.Limit.Events
		})
		if known.Kind != store.KindNone && !caused {
			h.wrong("an instance knows without a cause: %+v", known)
		}
		r, sure := h.ruling(known.Zone, known.Key, h.Length, h.Length, func(*Deed) bool { return true })
		if sure && !h.hasLost() && (known.Kind != r.kind || known.Limit != r.limit) {
			h.wrong("an instance knows %+v, and operators have set %v", known, r)
		}
	}
}

// ruled checks each request to a zone in which networks decide: it meets the limit, the ban or the exemption that
// the smallest network has then. What an instance may not know of, or what may have ended, is not checked.
func (h *History) ruled() {
	if h.Plan.Addresses == 0 || h.hasLost() || h.Plan.has(machines) {
		return // Redis may forget what operators do, or an instance may not learn of it in time
	}
	for i := range h.Verdicts {
		v := &h.Verdicts[i]
		for zone := range h.Plan.Zones {
			if by, known := h.decides(v, zone); known && !h.heeds(v, zone, by) {
				h.wrong("client %d in zone %d, key %d does not meet %v: %+v", v.Number, zone, v.Key, by, v)
			}
		}
	}
}

// decides returns what decides about a request in a zone: what is set for the smallest network around its key for which
// something is, unless something is set for the key itself, which is for its store.
func (h *History) decides(v *Verdict, zone int) (by ruling, known bool) {
	for _, number := range append([]int{v.Key}, h.Plan.around(v.Key)...) {
		by, known = h.ruling(zone, number, v.Began, v.looked(), func(d *Deed) bool { return h.isKnown(d, v) })
		if known && by.kind != store.KindNone && number >= 0 {
			return ruling{}, true
		} else if !known || by.kind != store.KindNone {
			break
		}
	}
	return by, known
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
	case d.Instance == v.Instance:
		return true
	}
	return v.Began > d.Ended+knownWithin+answersIn
}

// heeds reports whether a zone has done with a request what a ruling says, as far as the verdict tells.
func (h *History) heeds(v *Verdict, zone int, by ruling) bool {
	if !h.Plan.Zones[zone].Overrides || v.Err != "" || v.Zone >= 0 && v.Zone != zone || v.Sort == exempt {
		return true
	}
	for _, u := range v.Unasked {
		switch {
		case u.Zone == zone && u.Banned && by.over > 0: // a ban tells when it ends
			return by.kind == store.KindBanned && u.Wait >= by.ends-v.Began-timeout && u.Wait <= by.over-v.Began
		case u.Zone == zone && u.Banned:
			return by.kind == store.KindBanned && u.Wait == algorithms.Never
		case u.Zone == zone || u.Zone < zone && !u.DryRun:
			return true
		}
	}
	answers := func(some func(a *Answer) bool) bool {
		return slices.ContainsFunc(h.Answers, func(a Answer) bool {
			return a.Event == v.Number && a.Zone == zone && a.Began >= v.Began && some(&a)
		})
	}
	// An instance that decides alone has a share of the limit, also for who leaves while it makes them wait.
	alone := v.Outcome == outcome.Local || v.Outcome == outcome.Abandoned && answers(func(a *Answer) bool { return a.Failure != "" })
	for _, p := range v.Parts {
		switch {
		case p.Zone != zone || alone:
		case by.kind == store.KindLimit:
			return p.Quota == by.limit
		default:
			return by.kind == store.KindNone && slices.Contains(h.Plan.ownLimits(zone), p.Quota)
		}
	}
	switch {
	case answers(func(*Answer) bool { return true }): // and no more is known
		return by.kind == store.KindNone || by.kind == store.KindLimit
	case v.Outcome != outcome.Allowed:
		return true
	}
	return by.kind == store.KindExempt
}
