package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

var _ = promise("a request costs what its body says", (*History).bodies)

// bodies checks what is decided about requests whose bodies say what they cost. One that cannot be read passes no limit
// that always holds, unless such requests have a cost.
func (h *History) bodies() (violations []string) {
	for i := range h.Verdicts {
		v := &h.Verdicts[i]
		e := &h.Plan.Events[v.Event]
		if e.Kind != Request {
			continue
		}
		for _, p := range v.Parts {
			z := &h.Plan.Zones[p.Zone]
			if want, decides := z.asked(e); z.Asks != "" && (!decides || p.Cost != want) {
				violations = append(violations, fmt.Sprintf("client %d costs %d in zone %d, should be %d", v.Event, p.Cost, p.Zone, want))
			}
		}
		for i := range h.Plan.Zones {
			z := &h.Plan.Zones[i]
			if meets := e.Zone < 0 || e.Zone == i; meets && z.Asks != "" && e.Sort == garbled && z.Unreadable == 0 && !z.refusesSome() && v.Passes {
				violations = append(violations, fmt.Sprintf("client %d passes zone %d with a body that cannot be read", v.Event, i))
			}
		}
	}
	return violations
}

var _ = promiseOfKeys("what a response takes is charged, also if its instance is killed", (*key).measures)

// payEvery is how often a request pays for what its response has taken so far.
const payEvery = 5 * time.Second

// measures checks that a request is charged what its response has taken in the end. If its instance was killed before, it
// has paid for all but the last five seconds. Clocks of instances are a thousandth too fast or too slow. When a request has left
// a queue, others pay for its turn in place of their own, or nobody gets it. So they pay together at least what they take.
func (k *key) measures() (violations []string) {
	if k.Measures == "" || k.Judges {
		return nil
	}
	together, unclear := k.Limit.Mode == algorithms.ModeQueue && slices.ContainsFunc(k.Verdicts, func(v Verdict) bool { return !v.Passes }), false
	leastOfAll := int64(0)
	for i := range k.Verdicts {
		v := &k.Verdicts[i]
		e := &k.Plan.Events[v.Event]
		a := k.chargedFor(v)
		if a == nil || !v.Passes || e.Kind != Request || e.For > 0 || e.Cost == 0 {
			unclear = unclear || v.Passes
			continue
		}
		least, greatest := k.mayPay(v, a)
		leastOfAll += least
		if total := a.Cost + a.Delta; !together && (total < least || total > greatest) {
			violations = append(violations, fmt.Sprintf("the response to client %d takes %v, and zone %d, key %d is charged %d, which should be from %d to %d", v.Event, e.After, k.zone, k.key, total, least, greatest))
		}
	}
	if total := k.charged(); together && !unclear && total < leastOfAll {
		violations = append(violations, fmt.Sprintf("all responses together charge zone %d, key %d with %d, which should be at least %d", k.zone, k.key, total, leastOfAll))
	}
	return violations
}

// mayPay returns what the response to a request may cost. A request that passes uncounted, because Redis did not answer its last
// try, may pay nothing: what it was charged when it tried before is given back.
func (k *key) mayPay(v *Verdict, a *Answer) (least, greatest int64) {
	e := &k.Plan.Events[v.Event]
	bytes, slack := int64(len(spentBody(e.spends()))), e.After/500+time.Microsecond
	least, greatest = k.measured(e.After-slack, bytes, e.Cost), k.measured(e.After+slack, bytes, e.Cost)
	for _, d := range k.Killed {
		if over := d.At - v.Ended; d.Instance == v.Instance && over <= e.After+slack {
			least, greatest = k.measured(max(0, over-payEvery-slack), 0, e.Cost), max(greatest, a.Cost)
		}
	}
	if v.Outcome == outcome.FailedOpen || v.Outcome == outcome.Local {
		least = 0
	}
	return least, greatest
}

// charged returns what the key is charged in the end.
func (k *key) charged() (sum int64) {
	for _, a := range k.admitted {
		sum += a.Cost + a.Delta
	}
	return sum
}
