package redisstore_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/model"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestStoresEqualModel runs random schedules of random limits and costs through the memory store and the model, and in
// "make deep" the Redis store too. It compares every field of every decision, for a key whose limits change, in part or
// altogether, and change back.
func TestStoresEqualModel(t *testing.T) {
	t.Parallel()
	var server *redistest.Server
	if deep.Run() {
		server = redistest.Shared(t)
	}
	for _, name := range algorithms.Names() {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, server)
			run := 0
			deep.Property(t, 23, func(rt *rapid.T) {
				run++
				newSchedule(rt, p, name, strconv.Itoa(run)).run()
			})
		})
	}
}

// schedule is everything that happens to one key.
type schedule struct {
	*rapid.T
	pair      *pair
	algorithm string
	key       string
	limit     algorithms.Limit
	limits    []algorithms.Limit // the limits so far
	often     int                // the limits change often
	sides     []side
	model     *model.Key

	now, start, earliest int64
	skew                 int64 // the difference between this process's idea of the date and Redis's
	renewing             bool
	hold                 time.Duration   // of all limits, or 0: nothing is charged ahead
	keyRules             *store.KeyRules // with them groups.lua decides
	last                 algorithms.Decision
	newest               int64 // the time of the latest charge
	charges              []charged
	before               int // how many of these are from before the last reset
	names                int
	story                []string // the events so far
}

// charged is a charge, and the name that the model has for it.
type charged struct {
	store.Adjustment
	name string
}

func newSchedule(t *rapid.T, p *pair, algorithm, key string) *schedule {
	s := &schedule{T: t, pair: p, algorithm: algorithm, key: key, model: model.New(algorithm)}
	s.limit = drawLimit(t, algorithm)
	s.often = rapid.SampledFrom([]int{1, 3, 19, 19}).Draw(t, "a change in")
	base := storetest.Start
	if algorithm == "fixed_window" && rapid.Bool().Draw(t, "on the calendar") {
		s.limit, base = drawCalendar(t, s.limit.Events)
		s.skew = rapid.SampledFrom([]int64{0, 0, -20 * 3600e6, 20 * 3600e6}).Draw(t, "skew")
	}
	s.now = base + rapid.Int64Range(0, 1e9).Draw(t, "offset")
	s.start, s.earliest = s.now, base-1e12
	s.story = []string{"from " + time.UnixMicro(s.now).UTC().Format(time.RFC3339Nano), fmt.Sprintf("limit %+v", s.limit)}
	s.renewing = algorithm == "concurrency" && rapid.Bool().Draw(t, "renewing")
	s.sides = []side{storeSide{p.memory}}
	if p.redis != nil {
		s.sides = append(s.sides, newRedisSide(p.redis))
	}
	if s.renewing {
		s.sides[0] = &goSide{p, make(map[string]*goKey)}
	} else if algorithm == "concurrency" {
		s.limit.Lease = max(s.limit.Lease, longLease)
	}
	if algorithm != "concurrency" && rapid.Bool().Draw(t, "ahead") {
		least := algorithms.MinHold.Microseconds()
		most := min(algorithms.MaxHold.Microseconds(), length(s.limit)/10)
		s.hold = time.Duration(rapid.Int64Range(least, max(least, most)).Draw(t, "hold")) * time.Microsecond
		s.sides[0] = &goSide{p, make(map[string]*goKey)}
		if rapid.Bool().Draw(t, "key rules") {
			s.keyRules = &store.KeyRules{Overrides: true}
		}
	}
	s.use(s.limit)
	s.limits = append(s.limits, s.limit)
	return s
}

// use uses a limit, with the hold if it can have one.
func (s *schedule) use(l algorithms.Limit) {
	if l.Mode != algorithms.ModeQueue {
		l.Hold = s.hold
	}
	s.limit = l
}

// longLease is a lease that the memory store does not renew by itself before a schedule is over.
const longLease = time.Minute

func (s *schedule) run() {
	for i := range rapid.IntRange(30, 90).Draw(s.T, "steps") {
		if rapid.IntRange(0, s.often).Draw(s.T, "change") == 0 {
			s.changeLimit()
		}
		s.now = min(max(s.now+drawGap(s.T, s.limit, s.last), s.earliest), latest)
		s.pair.set(s.now, s.skew)
		switch rapid.IntRange(0, 19).Draw(s.T, "do") {
		case 0, 1:
			s.adjust()
		case 2, 3:
			s.renew()
		case 4:
			s.reset()
		}
		s.take(i)
	}
	for _, r := range s.charges {
		r.Delta = -r.Cost
		s.sides[0].adjust(s.T, r.Adjustment) // otherwise it would be renewed while other schedules run
	}
}

func (s *schedule) take(i int) {
	r := rule(s.T, s.algorithm, s.limit)
	s.names++
	if s.now < s.newest { // the states that charges from before a reset are compared with may be dated back
		s.keep(func(c *charged) bool { return c.At < s.now })
	}
	c := store.Check{Rule: r, Key: s.key, Cost: drawCost(s.T, s.limit, s.last), LeaseID: storetest.LeaseID(r), KeyRules: s.keyRules}
	if r.Hold() > 0 && s.now > s.newest { // charges at one time are not told apart
		c.Ahead = rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 60_000)).Draw(s.T, "want")
	}
	name := "r" + strconv.Itoa(s.names)
	got := s.sides[0].take(s.T, c)
	guess := &got
	if i%16 == 0 {
		guess = nil // now and then, the model searches all states
	}
	want := s.model.Take(s.limit, s.now, c.Cost, name, guess)
	if want.Allowed && c.Ahead > 0 {
		want.Units, want.Lasts = s.model.Ahead(s.limit, s.now, c.Cost, c.Ahead, name+"+")
		if want.Units > 0 && c.Cost > 0 && s.algorithm == "sliding_window_log" {
			want.Ahead = want.Lasts
		}
	}
	all := []algorithms.Decision{got}
	for _, side := range s.sides[1:] {
		all = append(all, side.take(s.T, c))
	}
	for i, got := range all {
		if got != want {
			s.tell("take", c.Cost, name, got)
			s.Fatalf("the model says otherwise:\n  model   %+v\n  side %d %+v\n%s", want, i, got, strings.Join(s.story, "\n"))
		}
	}
	s.tell("take", c.Cost, name, want)
	s.last = want
	if want.Allowed && c.Cost > 0 {
		s.newest = max(s.newest, s.now)
		s.keep(func(c *charged) bool { return c.At < s.now }) // the clock has gone back, or stood still: not told apart
		s.charges = append(s.charges, charged{store.Adjustment{Check: c, At: want.Booked(), Turn: want.Turn()}, name})
	}
	if c.Ahead > 0 {
		s.tell("ahead", c.Ahead, name+"+")
	}
	if want.Units > 0 {
		s.newest = max(s.newest, s.now)
		c.Cost = want.Units
		s.charges = append(s.charges, charged{store.Adjustment{Check: c, At: want.At + want.Lasts.Microseconds(), Turn: want.At}, name + "+"})
	}
}

// adjust adjusts a charge: it gives some or all of it back, or charges more.
//
// It does not adjust where the clock has gone back behind a charge, because the model does not
// know what was given back at that time and leaks out again. And it does not adjust every turn:
// where turns are less than a microsecond apart, the time of a turn does not tell which one is
// the last.
func (s *schedule) adjust() {
	if len(s.charges) == 0 || s.algorithm != "concurrency" && s.now < s.newest {
		return
	}
	i := len(s.charges) - 1
	if rapid.IntRange(0, 3).Draw(s.T, "which") == 0 {
		i = rapid.IntRange(0, i).Draw(s.T, "charge")
	}
	c := s.charges[i]
	by := c.Rule.Limit()
	queued := by.Mode == algorithms.ModeQueue
	if queued && by.Events > by.Window.Microseconds() {
		return
	}
	c.Delta = -c.Cost
	switch rapid.IntRange(0, 4).Draw(s.T, "how much") {
	case 0:
		c.Delta = -rapid.Int64Range(1, c.Cost).Draw(s.T, "part")
	case 1:
		c.Delta = max(1, drawCost(s.T, by, s.last))
	}
	switch {
	case c.Delta < 0:
		s.charges = slices.Delete(s.charges, i, i+1)
		if i < s.before {
			s.before--
		}
	case queued:
		s.charges, s.before = nil, 0 // nothing is left of a debt, so no charge depends on it
	}
	if s.algorithm != "concurrency" {
		s.newest, s.earliest = s.now, s.now
	}
	s.tell("adjust", c.Delta, c.name, by)
	for _, side := range s.sides {
		side.adjust(s.T, c.Adjustment)
	}
	s.model.Adjust(by, s.now, c.At, c.Delta, c.name)
	if c.Delta > 0 { // with which the key may start from zero, at the time of the charge or now
		s.keep(func(other *charged) bool { return other.At < min(c.At, s.now) })
	}
}

// reset makes the key new. Charges of before stay, to be adjusted later.
func (s *schedule) reset() {
	s.story = append(s.story, "reset")
	for _, l := range s.limits {
		for _, side := range s.sides {
			side.reset(s.T, rule(s.T, s.algorithm, l), s.key)
		}
	}
	s.model.Reset()
	s.before = len(s.charges)
}

// keep keeps those charges from before the last reset for which ok is true.
func (s *schedule) keep(ok func(c *charged) bool) {
	kept := s.charges[:0]
	for i := range s.charges {
		if i >= s.before || ok(&s.charges[i]) {
			kept = append(kept, s.charges[i])
		}
	}
	s.before -= len(s.charges) - len(kept)
	s.charges = kept
}

func (s *schedule) renew() {
	if !s.renewing || len(s.charges) == 0 {
		return
	}
	c := rapid.SampledFrom(s.charges).Draw(s.T, "renew")
	s.tell("renew", c.Cost, c.name)
	for _, side := range s.sides {
		side.renew(s.T, c.Check)
	}
	s.model.Renew(c.Rule.Limit(), s.now, c.Cost, c.name)
}

// changeLimit draws another limit, or goes back to an earlier one. Requests of another plan,
// limits that are raised or lowered, and a Caddy with an older config do that.
func (s *schedule) changeLimit() {
	if n := len(s.limits); n > 0 && rapid.IntRange(0, 4).Draw(s.T, "new limit") > 0 {
		s.limit = s.limits[rapid.IntRange(0, n-1).Draw(s.T, "limit")]
	} else {
		s.use(s.alike(drawLimit(s.T, s.algorithm)))
		s.limits = append(s.limits, s.limit)
	}
	s.tell("limit", s.limit)
}

// alike often returns a limit that differs little from the last one.
func (s *schedule) alike(l algorithms.Limit) algorithms.Limit {
	if s.algorithm == "concurrency" && !s.renewing {
		l.Lease = max(l.Lease, longLease)
	}
	changed := s.limit
	switch rapid.IntRange(0, 5).Draw(s.T, "alike") {
	case 0, 1:
		changed.Events = l.Events
	case 2, 3:
		changed.Burst, changed.MaxWait = l.Burst, 0
		if changed.Mode == algorithms.ModeQueue {
			changed.MaxWait = l.MaxWait
		}
	case 4:
		if changed.Calendar == 0 {
			changed.Window, changed.Lease = l.Window, l.Lease
		}
	default:
		return l
	}
	changed.Hold = 0
	if a, _ := algorithms.Get(s.algorithm); a != nil {
		if _, err := a.Prepare(changed); err == nil {
			return changed
		}
	}
	return l
}

func (s *schedule) tell(what ...any) {
	at := time.Duration(s.now-s.start) * time.Microsecond
	s.story = append(s.story, fmt.Sprintf("%v %+v", at, what))
}
