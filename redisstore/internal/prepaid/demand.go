package prepaid

import (
	"math"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// demand estimates how many units requests need.
type demand struct {
	since time.Duration // the last ask
	came  int64         // the cost of the requests since then
	rate  float64       // before that, in the time of a hold
	last  int64         // how many units were asked for
	asks  bool          // an ask is under way
}

// background is how many units are worth asking for again before they are spent.
const background = 8

// want returns how many units to ask for: half of what is expected to be needed while they may be held, or most of it
// where chance changes little. So few are left over. It is at most twice as many as before, less what is held. Other
// factors change the number of calls little: from 0.4 to 1.25 of what is expected by half a percent, but then 3 to 27 %
// of the units are left over.
func (d *demand) want(now, hold time.Duration, held int64) int64 {
	if d.asks {
		return 0
	}
	elapsed := max(now-d.since, hold/8)
	rate := float64(d.came) * float64(hold) / float64(elapsed)
	if d.rate > 0 {
		rate = (d.rate + rate) / 2
	}
	units := min(int64(max(rate/2, rate-2*math.Sqrt(rate))), 2*max(2, d.last)) - held
	if units <= 0 && elapsed < 2*hold {
		return 0
	}
	*d = demand{since: now, rate: rate, last: units + held, asks: units > 0}
	return max(0, units)
}

// Adjust changes a charge as far as what is held can: a refund goes back to where the units came from, and a late cost is
// paid. It returns what is left to change.
func (t *Table) Adjust(a *store.Adjustment, now time.Duration) int64 {
	s, h, _ := t.lock(a.Rule, a.Key)
	defer s.mu.Unlock()
	switch {
	case h == nil || a.Override != "":
	case a.Delta < 0 && h.put(a.At, -a.Delta, now):
		return 0
	case a.Delta > 0 && now < h.end:
		paid := min(a.Delta, h.units)
		h.units, h.left = h.units-paid, h.left-a.Delta
		return a.Delta - paid
	}
	return a.Delta
}

// Sweep returns what is to be given back: what was not spent in time, or all that is held. It forgets keys that have not
// come for a while.
func (t *Table) Sweep(now time.Duration, all bool) (back []store.Adjustment) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for id, h := range s.holds {
			if s.turn(h, now); all {
				s.giveBackAll(h)
			}
			if h.units == 0 && !h.asks && now >= h.pause && (all || now-h.since > 4*h.check.Rule.Hold()) {
				delete(s.holds, id)
			}
		}
		back, s.back = append(back, s.back...), nil
		s.mu.Unlock()
	}
	return back
}

// Forget gives back what is held of a key of a zone, because it begins from zero, or has other rules now.
func (t *Table) Forget(zone, key string) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for id, h := range s.holds {
			if id.key == key && h.check.Rule.Zone() == zone {
				s.giveBackAll(h)
				h.gone = true
				delete(s.holds, id)
			}
		}
		s.mu.Unlock()
	}
}

// Held returns what is held of a key.
func (t *Table) Held(rule *store.Rule, key string) (units int64, end time.Duration) {
	s, h, _ := t.lock(rule, key)
	defer s.mu.Unlock()
	if h == nil {
		return 0, 0
	}
	return h.units + h.next.units, h.end
}
