package world

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/store"
)

var _ = promise("bans widen to a network if enough of its keys are banned, and only then", (*History).widens)

// widens checks what happened to the network of each zone whose bans widen.
func (h *History) widens() (violations []string) {
	for zone := range h.Plan.Zones {
		if h.Plan.Zones[zone].WidenFrom > 0 {
			w := h.widening(zone)
			violations = slices.Concat(violations, w.judgments(), w.decisions(), w.comes())
		}
	}
	return violations
}

// widening is what happened to the network of a zone whose bans widen.
type widening struct {
	*History
	Zone
	zone   int
	bans   []earned
	passes []pass
	steps  []WidenStep
}

// earned is a ban that a key has earned.
type earned struct {
	key    int
	answer *Answer
	ends   time.Duration
	told   time.Duration // when the instance knew
}

// pass is a request that the zone has not refused. Another one may have.
type pass struct {
	key    int
	v      *Verdict
	surely bool // and counts as one that has
}

func (h *History) widening(zone int) *widening {
	w := &widening{History: h, Zone: h.Plan.Zones[zone], zone: zone}
	for i := range h.Verdicts {
		v := &h.Verdicts[i]
		e := &h.Plan.Events[v.Event]
		if !h.Plan.within(e.Key) || e.Zone >= 0 && e.Zone != zone {
			continue
		}
		p, passes := pass{key: e.Key, v: v}, v.Passes
		for _, part := range v.Parts {
			if part.Zone == zone {
				p.surely = part.Allowed && part.Outcome == outcome.Allowed
				passes = passes || !part.Outcome.Refused()
			}
		}
		if passes {
			w.passes = append(w.passes, p)
		}
		for j := range h.Answers {
			if a := &h.Answers[j]; a.Event == v.Event && a.Client == v.Client && a.Zone == zone && a.Began >= v.Began && a.Ended <= v.Ended && a.Decision.BanBegins {
				w.bans = append(w.bans, earned{e.Key, a, h.when(a) + w.BanFor, v.Ended})
			}
		}
	}
	for _, s := range h.Steps {
		if s.Zone == zone {
			w.steps = append(w.steps, s)
		}
	}
	return w
}

// within reports whether a key is in the network to which bans widen.
func (p *Plan) within(key int) bool { return p.network(0).Contains(p.prefix(key).Addr()) }

// judgments checks each decision about the network by what happened to its keys.
func (w *widening) judgments() (violations []string) {
	for i := range w.steps {
		s := &w.steps[i]
		if s.What != judged || s.Verdict == store.Undecided {
			continue
		}
		wrong := func(format string, args ...any) {
			violations = append(violations, fmt.Sprintf("instance %d judges the network of zone %d at %v: ", s.Instance, w.zone, s.Began)+fmt.Sprintf(format, args...))
		}
		if n := w.banned(s); n < w.WidenFrom || s.Banned > n {
			wrong("%d keys are banned, told are %d", n, s.Banned)
		}
		all, surely := w.passed(s)
		if s.Passed > all || s.Verdict == store.Spared && all <= w.Innocent {
			wrong("spared is %v, and %d keys have passed, told are %d", s.Verdict == store.Spared, all, s.Passed)
		}
		if s.Verdict == store.Widened && surely > w.Innocent {
			wrong("it is banned, though %d others have passed", surely)
		}
	}
	return violations
}

// noteSlack is how long after a ban has begun the store may learn of it.
const noteSlack = 5 * time.Second

// banned is how many keys may be banned when the network is judged.
func (w *widening) banned(s *WidenStep) int {
	keys := make(map[int]bool)
	for _, b := range w.bans {
		over := b.ends + answersIn
		if w.Plan.has(links, servers, unable, machines) || w.Plan.Work > 0 {
			over += noteSlack
		}
		if b.answer.Began <= s.Ended && (over >= s.Began || len(w.clocks) > 1) && !w.unbanned(&b, s) {
			keys[b.key] = true
		}
	}
	return len(keys)
}

// unbanned reports whether an operator has ended a ban for sure before the network was judged, and the store had learned of it.
func (w *widening) unbanned(b *earned, s *WidenStep) bool {
	return !w.unsure() && slices.ContainsFunc(w.Deeds, func(d Deed) bool {
		ends := d.Zone == w.zone && d.Key == b.key && (d.Kind == Unban || d.Kind == Reset) && d.Failure == ""
		return ends && d.Began > b.told+noteSlack && d.Ended < s.Began
	})
}

// passed is how many keys of the network have passed before it was judged, and how many of these surely count.
func (w *widening) passed(s *WidenStep) (all, counted int) {
	some, surely := make(map[int]bool), make(map[int]bool)
	for _, p := range w.passes {
		if p.v.Began > s.Ended {
			continue
		}
		some[p.key] = true
		if p.surely && !w.unsure() && !w.refused(p.key, s) && w.noted(p.v, s) {
			surely[p.key] = true
		}
	}
	return len(some), len(surely)
}

// refused reports whether requests of a key may have been refused before the network was judged.
func (w *widening) refused(key int, s *WidenStep) bool {
	return slices.ContainsFunc(w.Verdicts, func(v Verdict) bool {
		return w.Plan.Events[v.Event].Key == key && !v.Passes && v.Began <= s.Ended
	}) || slices.ContainsFunc(w.Answers, func(a Answer) bool {
		return a.Key == key && a.Zone == w.zone && !a.Decision.Allowed && a.Began <= s.Ended
	})
}

// noted reports whether the instance that has let a request pass was watching before, and has told the store since. The
// network was a suspect all the time.
func (w *widening) noted(v *Verdict, by *WidenStep) bool {
	from := time.Duration(-1)
	for _, s := range w.steps {
		if s.What == watched && s.Instance == v.Instance && s.Ended < v.Began {
			from = s.Began // the last one counts
		}
	}
	if from < 0 || slices.ContainsFunc(w.steps, func(s WidenStep) bool { return s.What == judged && s != *by && s.Ended >= from && s.Began <= by.Ended }) {
		return false
	}
	return slices.ContainsFunc(w.steps, func(s WidenStep) bool {
		return s.What == watched && s.Instance == v.Instance && s.Failure == "" && s.Began > v.Ended && s.Ended < by.Began
	})
}

// decisions checks that a decision holds for as long as it says, and that what an operator has set for the network stays.
func (w *widening) decisions() (violations []string) {
	decided := time.Duration(-1)
	for i := range w.steps {
		s := &w.steps[i]
		switch {
		case s.What == judged && s.Verdict != store.Undecided:
			if decided >= 0 && s.Ended < decided+w.BanFor-timeout && !w.unsure() {
				violations = append(violations, fmt.Sprintf("instance %d judges the network of zone %d at %v, and it was judged at %v", s.Instance, w.zone, s.Began, decided))
			}
			decided = s.Began
		case s.What == widened && w.WidenDryRun:
			violations = append(violations, fmt.Sprintf("instance %d bans the network of zone %d at %v, in a dry run", s.Instance, w.zone, s.Began))
		case s.What == widened:
			if r := w.overruled(s); r != nil {
				violations = append(violations, fmt.Sprintf("instance %d bans the network of zone %d at %v, for which %v was set", s.Instance, w.zone, s.Began, *r))
			}
		}
	}
	return violations
}

// overruled returns what an operator has set last for a network for sure, and still holds.
func (w *widening) overruled(s *WidenStep) *ruling {
	all := w.rulings((&Known{Zone: w.zone}).about)
	if len(all) == 0 {
		return nil
	}
	last := slices.MaxFunc(all, func(a, b ruling) int { return cmp.Compare(a.began, b.began) })
	others := slices.ContainsFunc(all, func(r ruling) bool { return r.doubtful || r != last && r.ended >= last.began })
	if others || w.unsure() || last.clears || last.ends <= s.Ended || last.ended >= s.Began {
		return nil
	}
	return &last
}

// comes checks that the network is banned when enough of its keys were long enough, where nothing disturbs that. A dry run decides
// that it would be.
func (w *widening) comes() (violations []string) {
	if w.unsure() || w.Plan.has(links, servers, unable, clocks, machines) || w.Plan.hasKind(Reload) || w.touched() {
		return nil
	}
	var first []earned
	for _, b := range w.bans {
		if !slices.ContainsFunc(first, func(f earned) bool { return f.key == b.key }) {
			first = append(first, b)
		}
	}
	slices.SortFunc(first, func(a, b earned) int { return cmp.Compare(a.told, b.told) })
	if len(first) < w.WidenFrom {
		return nil
	}
	first = first[:w.WidenFrom]
	by := first[len(first)-1].told + widenWatched + 2*widenEvery + answersIn
	others := make(map[int]bool)
	for _, p := range w.passes {
		if !slices.ContainsFunc(first, func(f earned) bool { return f.key == p.key }) && p.v.Began <= by {
			others[p.key] = true
		}
	}
	if len(others) > w.Innocent || slices.ContainsFunc(first, func(f earned) bool { return f.ends <= by }) {
		return nil
	}
	banned := func(s WidenStep) bool {
		decides := s.What == widened || w.WidenDryRun && s.What == judged && s.Verdict == store.Widened
		return decides && s.Failure == "" && s.Ended <= by
	}
	if !slices.ContainsFunc(w.steps, banned) {
		violations = append(violations, fmt.Sprintf("the network of zone %d is not banned at %v, though %d keys of it are", w.zone, by, len(first)))
	}
	return violations
}

// touched reports whether an operator has done something with the network or a key.
func (w *widening) touched() bool {
	return slices.ContainsFunc(w.Deeds, func(d Deed) bool { return d.Zone == w.zone && d.Kind != Group && d.Kind != ClearGroup })
}
