package world

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// Coverage counts which pairs of a fault and an operation have met: the fault was on while the operation was under way.
type Coverage map[pair]int

// pair is a fault, and an operation: what was done, to a limit of which algorithm, and whether units of it are held.
type pair struct {
	fault Kind
	what  string
}

const (
	asks    = "ask "
	adjusts = "adjust "
)

// what names an operation in a zone.
func (z *Zone) what(do string) string {
	if z.Lend > 0 {
		return do + z.Algorithm + " lent"
	}
	return do + z.Algorithm
}

// Add counts what has met in a world.
func (c Coverage) Add(h *History) {
	for i := range h.Plan.Events {
		e := &h.Plan.Events[i]
		if !operations[e.Kind].sort.trouble() {
			continue
		}
		meets := func(from, to time.Duration, instance int) bool {
			begins := h.began + e.At
			return from <= begins+e.For && to >= begins && (e.Instance < 0 || e.Instance == instance)
		}
		for j := range h.Answers {
			a := &h.Answers[j]
			z := &h.Plan.Zones[a.Zone]
			if meets(a.Began, a.Ended, a.Instance) {
				c[pair{e.Kind, z.what(asks)}]++
			}
			if a.Adjusted != 0 && meets(a.Adjusted, a.Adjusted+time.Millisecond, a.Instance) {
				c[pair{e.Kind, z.what(adjusts)}]++
			}
		}
		for j := range h.Verdicts {
			v := &h.Verdicts[j]
			if !meets(v.Began, v.Ended+h.Plan.Events[v.Event].After, v.Instance) {
				continue
			}
			for _, part := range v.Parts {
				for _, a := range abilities {
					if a.of(h.Plan, &h.Plan.Zones[part.Zone]) {
						c[pair{e.Kind, a.name}]++
					}
				}
			}
		}
		for _, other := range h.Plan.Events {
			if at := h.began + other.At; operations[other.Kind].sort == operators && meets(at, at+time.Millisecond, other.Instance) {
				c[pair{e.Kind, string(other.Kind)}]++
			}
		}
	}
}

// abilities are what zones of whole instances can do, whatever their algorithm.
var abilities = []struct {
	name string
	of   func(p *Plan, z *Zone) bool
}{
	{"costs of bodies", func(_ *Plan, z *Zone) bool { return z.Asks }},
	{"enforce", func(_ *Plan, z *Zone) bool { return z.Enforced > 0 }},
	{"keys that are addresses", func(p *Plan, _ *Zone) bool { return p.Addresses > 0 }},
}

// ableZones are zones that have them.
func ableZones() []Zone {
	asks := Zone{Algorithm: "token_bucket", Limit: algorithms.Limit{Events: 9, Window: time.Hour}, Enforced: 50, Costs: Costs{Asks: true}}
	bans := Zone{Algorithm: "token_bucket", Limit: algorithms.Limit{Events: 1, Window: time.Hour}, Overrides: true, BanAfter: 1, BanFor: 9 * time.Second}
	return []Zone{asks, bans}
}

// pairs are all that can meet.
func pairs() (all []pair) {
	var what []string
	for _, a := range abilities {
		what = append(what, a.name)
	}
	for _, z := range eachZone() {
		what = append(what, z.what(asks), z.what(adjusts))
	}
	for _, o := range kinds(operators) {
		what = append(what, string(o.Kind))
	}
	for s := range sorts {
		if !s.trouble() {
			continue
		}
		for _, o := range kinds(s) {
			for _, w := range what {
				if p := (pair{o.Kind, w}); apart[p] == "" && apart[pair{o.Kind, ""}] == "" {
					all = append(all, p)
				}
			}
		}
	}
	return all
}

// eachZone are zones of each algorithm, with and without lend.
func eachZone() (all []Zone) {
	for _, name := range algorithms.Names() {
		z := Zone{Algorithm: name, Limit: algorithms.Limit{Events: 9, Window: time.Hour}}
		if z.slots() {
			z.Limit.Window, z.Limit.Lease = 0, 10*time.Second
		}
		z.Overrides = true
		all = append(all, z)
		z.Overrides = false
		if z.lends(time.Second) {
			z.Lend = time.Second
			all = append(all, z)
		}
	}
	return all
}

// drawMeeting returns a plan in which a fault meets all operations in all zones.
func drawMeeting(seed uint64, fault *operation) *Plan {
	r := rand.New(rand.NewPCG(seed, 34))
	p := &Plan{Seed: seed, Instances: 2, Whole: true, Zones: append(eachZone(), ableZones()...)}
	if p.Addresses = 4; seed%2 == 0 {
		p.Addresses = 6
	}
	begins, lasts := 500*time.Millisecond, 400*time.Millisecond
	f := Event{Kind: fault.Kind, Instance: -1}
	for _, l := range []Layout{Single, Sentinels, Cluster} {
		if p.Layout = l; fault.fits == nil || fault.fits(p) {
			break
		}
	}
	if fault.draw != nil {
		fault.draw(r, p, &f, time.Second)
	}
	if fault.Kind == Busy {
		f.Instance = -1
	}
	f.At, f.For = begins, lasts
	p.Events = append(p.Events, f)
	for number := range p.Zones {
		for instance := range p.Instances {
			for _, at := range []time.Duration{begins - 100*time.Millisecond, begins + lasts/4, begins + lasts/2} { // and back while it is on
				kind := Take
				if number >= len(eachZone()) {
					kind = Request
				}
				p.Events = append(p.Events, Event{
					At: at + between(r.Uint64(), 0, 50*time.Millisecond), Kind: kind, Instance: instance, Zone: number, Key: r.IntN(maxKeys),
					Cost: 1, Delta: -1, After: 150 * time.Millisecond,
				})
			}
		}
	}
	for _, o := range kinds(operators) {
		if o.fits != nil && !o.fits(p) {
			continue
		}
		e := Event{Kind: o.Kind, Instance: r.IntN(p.Instances)}
		if o.draw != nil {
			o.draw(r, p, &e, time.Second)
		}
		e.At = begins + between(r.Uint64(), 0, lasts)
		p.Events = append(p.Events, e)
	}
	p.sort()
	return p
}

// apart are pairs that cannot meet, or faults that meet nothing (""), with the reason.
var apart = map[pair]string{
	{Kill, ""}:    "nobody asks an instance that is no more",
	{Suspend, ""}: "what comes waits until the instance goes on",
}

// never are the pairs that can meet and have not.
func (c Coverage) never() []pair {
	return slices.DeleteFunc(pairs(), func(p pair) bool { return c[p] > 0 })
}

// String is a table, with a row for each operation and a column for each fault, and a list of the pairs that have not
// met.
func (c Coverage) String() string {
	faults, what := make(map[Kind]bool), make(map[string]bool)
	for _, p := range pairs() {
		faults[p.fault], what[p.what] = true, true
	}
	columns, rows := slices.Sorted(maps.Keys(faults)), slices.Sorted(maps.Keys(what))
	var b strings.Builder
	fmt.Fprintf(&b, "%-34s", "under way while on:")
	for _, f := range columns {
		fmt.Fprintf(&b, " %*s", width(f), f)
	}
	for _, w := range rows {
		fmt.Fprintf(&b, "\n%-34s", w)
		for _, f := range columns {
			fmt.Fprintf(&b, " %*d", width(f), c[pair{f, w}])
		}
	}
	never := c.never()
	slices.SortFunc(never, func(a, b pair) int { return cmp.Or(cmp.Compare(a.fault, b.fault), cmp.Compare(a.what, b.what)) })
	fmt.Fprintf(&b, "\n%d pairs of %d have met\n", len(pairs())-len(never), len(pairs()))
	for _, p := range never {
		fmt.Fprintf(&b, "never met: %s, %s\n", p.fault, p.what)
	}
	return b.String()
}

// width is how wide the column of a fault is.
func width(f Kind) int { return max(6, len(f)) }
