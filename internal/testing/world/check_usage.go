package world

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	usage "github.com/seed-161337e5/caddyratelimit/internal/sums"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Used is what a key has used in the end, as the sums of its zone say.
type Used struct {
	Zone, Key int
	usage.Counts
}

// readUsage asks an instance for all sums.
func (w *world) readUsage(in *instance) {
	for i := range w.plan.Zones {
		if !w.plan.Zones[i].Usage {
			continue
		}
		to := time.Now().Add(time.Second)
		q := store.UsageQuery{Zone: zoneName(i), Length: usageWindow.Length, From: to.Truncate(usageWindow.Length), To: to}
		all, next, err := in.store.ReadUsage(context.Background(), &q, "", 1000)
		if err != nil || next != "" {
			w.history.wrong("what keys of zone %d have used cannot be read: %q, %v", i, next, err)
		}
		for _, u := range all {
			number, ok := w.plan.keyNumber(u.Key)
			if !ok || u.Kind != store.UsageOfKey {
				w.history.wrong("zone %d has a sum of %c%q", i, u.Kind, u.Key)
			}
			w.history.note(w.net.now(), fmt.Sprintf("zone %d, key %d has used %+v", i, number, u))
			w.history.Used = append(w.history.Used, Used{i, number, usage.Counts{Requests: u.Requests, Cost: u.Cost, Refused: u.Refused}})
		}
	}
}

var _ = promiseOfKeys("usage counts each request once, unless a killed instance or Redis has lost it", (*key).sums)

// sums checks what a key has used: exactly what was decided, if nothing can be lost. Otherwise it is no more than that, and no less
// than what was not lost for sure.
func (k *key) sums() []string {
	if !k.Usage {
		return nil
	}
	var least, most usage.Counts // a cost that may have become less when it was known counts as that, and as before
	exact, known := true, true
	for i := range k.Verdicts {
		v := &k.Verdicts[i]
		c, late, sure := k.uses(v)
		known = known && sure
		most = plus(most, usage.Counts{Requests: c.Requests, Cost: c.Cost + max(0, late), Refused: c.Refused})
		least.Cost += min(0, late)
		switch loses := k.mayLoseUsage(v); loses {
		case losesNothing:
			c.Cost += max(0, late)
		case losesAll:
			c = usage.Counts{}
			fallthrough
		default:
			exact = false
		}
		least = plus(least, c)
	}
	if exact {
		most.Cost = least.Cost
	}
	used := k.used()
	counts := used.Requests >= least.Requests && used.Requests <= most.Requests && used.Refused >= least.Refused && used.Refused <= most.Refused
	if counts && (!known || used.Cost >= least.Cost && used.Cost <= most.Cost) {
		return nil
	}
	return []string{fmt.Sprintf("zone %d, key %d has used %+v, which should be from %+v to %+v", k.zone, k.key, used, least, most)}
}

func plus(a, b usage.Counts) usage.Counts {
	return usage.Counts{Requests: a.Requests + b.Requests, Cost: a.Cost + b.Cost, Refused: a.Refused + b.Refused}
}

// used is what the sums say.
func (k *key) used() usage.Counts {
	for _, u := range k.Used {
		if u.Zone == k.zone && u.Key == k.key {
			return u.Counts
		}
	}
	return usage.Counts{}
}

// uses returns what a request uses of the key, and how much more or less it costs than was known before its response. That is
// not known if charges look alike, or if the instance has decided alone.
func (k *key) uses(v *Verdict) (c usage.Counts, late int64, known bool) {
	for _, p := range v.Parts {
		switch {
		case p.Zone != k.zone || p.Key != k.key:
			continue
		case p.Outcome.Refused() || p.Outcome == outcome.DryRun:
			return usage.Counts{Refused: 1}, 0, true
		case !v.Passes || p.Outcome != outcome.Allowed && p.Outcome != outcome.Local && p.Outcome != outcome.Over:
			return c, 0, true
		}
		late, known = k.costsLater(v, &p)
		return usage.Counts{Requests: 1, Cost: p.Cost}, late, known
	}
	if a := k.lastAnswer(v); v.Passes && a != nil && (a.Failure != "" || !a.Decision.Exempt) { // nobody has decided
		c = usage.Counts{Requests: 1, Cost: a.Cost}
	}
	return c, 0, true
}

// costsLater returns how much more a request costs by its response than before.
func (k *key) costsLater(v *Verdict, p *Part) (late int64, known bool) {
	e := &k.Plan.Events[v.Event]
	if !k.Judges && k.Measures == "" && !k.Body && e.Delta == 0 || p.Outcome == outcome.Over {
		return 0, true
	}
	if a := k.chargedFor(v); a != nil && p.Outcome == outcome.Allowed && !k.queues() {
		return a.Delta, true
	}
	return 0, false
}

// mayLoseUsage says what the sums may lack of a request, because Redis has lost it, or its instance was killed before it could
// send it, or what it cost later.
func (k *key) mayLoseUsage(v *Verdict) (loses losable) {
	steady := !k.Plan.has(links, servers, unable) && !k.Plan.hasKind(Busy, Suspend) && k.Plan.Work == 0
	if k.hasLost() || len(k.clocks) > 1 {
		return losesAll
	}
	for _, d := range k.Killed {
		switch {
		case d.Instance != v.Instance:
		case !steady || v.Ended > d.At-usage.Interval-3*timeout:
			return losesAll
		default:
			loses = losesLater
		}
	}
	return loses
}

// losable is how much of a request may be lost.
type losable int

const (
	losesNothing losable = iota
	losesLater
	losesAll
)
