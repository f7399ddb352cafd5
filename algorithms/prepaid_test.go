package algorithms_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

// TestAheadNeverAboveTheLimit walks through short histories of one key: charges, also ahead, units that are spent, put back,
// refunded and given back, and refunds, at the times at which they matter. After each step it asks: if all that is held, and
// all that the state has, was spent now, would it be more than the limit? What it checks this by has no code of the
// algorithms.
func TestAheadNeverAboveTheLimit(t *testing.T) {
	for _, name := range walked {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range deep.Steps(12_000, 150_000) {
				w := newWalk(t, name, deep.Seed(i))
				for range 4 + w.IntN(12) {
					w.step()
					if bad := w.worst(); bad != "" {
						t.Fatalf("seed %d, %+v: %s, %v", i, w.limit, bad, w.story)
					}
				}
			}
		})
	}
}

var walked = []string{
	"token_bucket", "token_bucket interval", "leaky_bucket", "sliding_window_log", "fixed_window", "fixed_window first", "sliding_window_counter",
}

// walk is a history. Time goes in ticks, which are milliseconds, and microseconds around them.
type walk struct {
	*rand.Rand
	name     string
	limit    algorithms.Limit
	params   algorithms.Params
	key      *key
	now      int64
	units    []*walkUnits
	charges  []walkCharge
	admitted []admission
	story    []string
}

// walkUnits are what one charge ahead has paid for.
type walkUnits struct {
	left     int64
	end      int64 // they may be spent before
	at, turn int64 // of an adjustment
	spent    []int // admissions that can be refunded
}

type walkCharge struct {
	cost, at, turn int64
	admission      int
}

type admission struct{ at, cost int64 }

const tick = 1000

func newWalk(t testing.TB, name string, seed uint64) *walk {
	r := rand.New(rand.NewPCG(seed, 3))
	w := &walk{Rand: r, name: name, now: start.UnixMicro() + r.Int64N(40)*tick}
	w.limit = algorithms.Limit{Events: 1 + r.Int64N(24), Window: time.Duration(4+r.IntN(16)) * time.Millisecond}
	w.limit.Hold = time.Duration(1+r.Int64N(w.limit.Window.Milliseconds())) * time.Millisecond
	switch name {
	case "token_bucket interval":
		w.limit.Refill = algorithms.RefillInterval
		fallthrough
	case "token_bucket", "leaky_bucket":
		w.limit.Burst = 2 + r.Int64N(28)
	case "fixed_window first":
		w.limit.Align = algorithms.AlignFirstRequest
	}
	algorithm := name
	fmt.Sscan(name, &algorithm)
	w.key = newKey(t, algorithm)
	var err error
	if w.params, err = w.key.algorithm.Prepare(w.limit); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *walk) tell(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf("%d: ", w.now-start.UnixMicro())+fmt.Sprintf(format, args...))
}

// ask charges a cost, and units ahead. No two calls of a Redis are at the same microsecond.
func (w *walk) ask(cost, want int64) {
	defer func() { w.now++ }()
	d := w.key.ask(w.params, w.now, cost, want, "")
	units, lasts, booked := d.Units, d.Lasts.Microseconds(), w.now
	if _, ok := w.key.algorithm.(algorithms.Recorder); ok {
		booked += lasts
	}
	w.tell("cost %d passes: %v, and %d of %d units for %d", cost, d.Allowed, units, want, lasts)
	if d.Allowed && cost > 0 {
		w.admitted = append(w.admitted, admission{w.now, cost})
		w.charges = append(w.charges, walkCharge{cost, booked, w.now, len(w.admitted) - 1})
	}
	if units > 0 {
		end := w.now + min(lasts, w.limit.Hold.Microseconds())
		w.units = append(w.units, &walkUnits{left: units, end: end, at: w.now + lasts, turn: w.now})
	}
}

func (w *walk) step() {
	var u *walkUnits
	if len(w.units) > 0 {
		u = w.units[w.IntN(len(w.units))]
	}
	switch do := w.IntN(11); {
	case do < 2:
		w.now += tick*(1+w.Int64N(3)) - w.Int64N(4)/3
	case do < 4:
		w.ask(1+w.Int64N(4), 0)
	case do == 4:
		w.ask(w.Int64N(3), 1+w.Int64N(9))
	case do == 5:
		w.ask(0, 1+w.Int64N(9))
	case do == 6 && len(w.charges) > 0:
		w.refund(&w.charges[w.IntN(len(w.charges))])
	case u == nil:
	case do == 7: // until just before a hold ends
		w.now = max(w.now, u.end-1-w.Int64N(2)*tick)
	case do == 8 && u.left > 0 && w.now < u.end:
		w.spend(u, 1+w.Int64N(u.left))
	case do == 9 && len(u.spent) > 0:
		w.unspend(u, 1+w.IntN(len(u.spent)))
	case do == 10 && u.left > 0: // also early
		w.tell("give back %d units of %d", u.left, u.turn)
		w.adjust(u.at, u.turn, -u.left)
		u.left = 0
	}
}

func (w *walk) adjust(at, turn, delta int64) { w.key.adjust(w.params, w.now, at, turn, delta, "") }

func (w *walk) spend(u *walkUnits, n int64) {
	w.tell("spend %d", n)
	u.left -= n
	for range n {
		w.admitted = append(w.admitted, admission{w.now, 1})
		u.spent = append(u.spent, len(w.admitted)-1)
	}
}

// unspend takes back what units have paid for: they are put back where they were, or refunded.
func (w *walk) unspend(u *walkUnits, n int) {
	for _, i := range u.spent[:n] {
		w.admitted[i].cost = 0
	}
	u.spent = u.spent[n:]
	if w.now < u.end && w.IntN(2) == 0 {
		w.tell("put back %d", n)
		u.left += int64(n)
		return
	}
	w.tell("refund %d spent units of %d", n, u.turn)
	w.adjust(u.at, u.turn, -int64(n))
}

func (w *walk) refund(c *walkCharge) {
	if c.cost == 0 {
		return
	}
	n := 1 + w.Int64N(c.cost)
	w.tell("refund %d of the charge at %d", n, c.turn)
	w.adjust(c.at, c.turn, -n)
	w.admitted[c.admission].cost -= n
	c.cost -= n
}

// worst reports what is above the limit if all is spent now.
func (w *walk) worst() string {
	all := slices.Clone(w.admitted)
	for _, u := range w.units {
		if w.now < u.end {
			all = append(all, admission{w.now, u.left})
		}
	}
	all = append(all, admission{w.now, w.key.take(w.params, w.now, 0).Remaining})
	all = slices.DeleteFunc(all, func(a admission) bool { return a.cost == 0 })
	slices.SortStableFunc(all, func(a, b admission) int { return cmp.Compare(a.at, b.at) })
	if w.name == "fixed_window" || w.name == "sliding_window_counter" {
		return w.aboveInWindows(all)
	}
	return w.aboveBetween(all)
}

// aboveInWindows looks at windows on the clock.
func (w *walk) aboveInWindows(all []admission) string {
	length, sums := w.limit.Window.Microseconds(), make(map[int64]int64)
	for _, a := range all {
		n := a.at / length
		sums[n] += a.cost
		before := int64(0)
		if w.name == "sliding_window_counter" {
			before = sums[n-1] * ((n+1)*length - a.at)
		}
		if before > (w.limit.Events-sums[n])*length {
			return fmt.Sprintf("%d in the window of %d, and %d in the one before", sums[n], a.at, sums[n-1])
		}
	}
	return ""
}

// aboveBetween looks at all pairs of times.
func (w *walk) aboveBetween(all []admission) string {
	length := w.limit.Window.Microseconds()
	for i := range all {
		sum := int64(0)
		for _, a := range all[i:] {
			sum += a.cost
			span := a.at - all[i].at
			var above bool
			switch w.name {
			case "token_bucket", "leaky_bucket":
				above = (sum-w.limit.Burst)*length > span*w.limit.Events
			case "token_bucket interval": // refills are a window apart at least
				above = sum > w.limit.Burst+(span/length+1)*w.limit.Events
			case "fixed_window first":
				above = sum > (span/length+2)*w.limit.Events
			case "sliding_window_log":
				above = sum > (span/length+1)*w.limit.Events
			}
			if above {
				return fmt.Sprintf("%d within %dus up to %d", sum, span, a.at-start.UnixMicro())
			}
		}
	}
	return ""
}
