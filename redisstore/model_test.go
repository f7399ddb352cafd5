package redisstore_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/model"
	"github.com/seed-161337e5/caddyratelimit/internal/model/vectors"
	"github.com/seed-161337e5/caddyratelimit/internal/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestStoresEqualModel runs random schedules of random limits and costs through the
// memory store, the Redis store and the model, and compares every field of every
// decision. Each run draws other schedules; one that fails says by which seed it can be
// drawn again.
func TestStoresEqualModel(t *testing.T) {
	server := redistest.Start(t)
	for _, name := range algorithms.Names() {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, server)
			run := 0
			deep.Check(t, 800, 100_000, func(rt *rapid.T) int {
				run++
				return newSchedule(rt, p, server, name, strconv.Itoa(run)).run()
			})
		})
	}
}

// schedule is what happens to one key.
type schedule struct {
	*rapid.T
	pair      *pair
	algorithm string
	key       string
	limit     algorithms.Limit
	sides     []side
	model     *model.Key

	now, start, earliest int64
	skew                 int64 // how far this process's idea of the date is from Redis's
	renewing             bool
	last                 algorithms.Decision
	newest               int64 // the latest charge
	givenBack            bool  // something, since then
	charges              []charged
	names                int
	story                []string // what has happened, as in testdata/vectors
}

// charged is a charge and the name that the model has for it.
type charged struct {
	store.Correction
	name string
}

func newSchedule(t *rapid.T, p *pair, server *redistest.Server, algorithm, key string) *schedule {
	s := &schedule{T: t, pair: p, algorithm: algorithm, key: key, model: model.New(algorithm)}
	s.limit = drawLimit(t, algorithm)
	base := storetest.Start
	if algorithm == "fixed_window" && rapid.Bool().Draw(t, "on the calendar") {
		s.limit, base = drawCalendar(t, s.limit.Events)
		s.skew = rapid.SampledFrom([]int64{0, 0, -20 * 3600e6, 20 * 3600e6}).Draw(t, "skew")
	}
	s.now = base + rapid.Int64Range(0, 1e9).Draw(t, "offset")
	s.start, s.earliest = s.now, base-1e12
	s.story = []string{"from " + time.UnixMicro(s.now).UTC().Format(time.RFC3339Nano), vectors.Options(s.limit)}
	s.renewing = algorithm == "concurrency" && rapid.Bool().Draw(t, "renewing")
	s.sides = []side{storeSide{p.memory}, newRedisSide(p.t, p.redis, server)}
	if s.renewing {
		s.sides[0] = &leaseSide{now: p.now.Load}
	} else if algorithm == "concurrency" {
		s.limit.Lease = max(s.limit.Lease, longLease)
	}
	return s
}

// longLease is one that the memory store does not renew by itself before a schedule is over.
const longLease = time.Minute

func (s *schedule) run() int {
	steps := rapid.IntRange(30, 90).Draw(s.T, "steps")
	for i := range steps {
		if rapid.IntRange(0, 19).Draw(s.T, "change") == 0 {
			s.changeLimit()
		}
		s.now = min(max(s.now+drawGap(s.T, s.limit, s.last), s.earliest), latest)
		s.pair.set(s.now, s.skew)
		switch rapid.IntRange(0, 9).Draw(s.T, "do") {
		case 0:
			s.correct()
		case 1:
			s.renew()
		}
		s.take(i)
	}
	for _, r := range s.charges {
		r.Delta = -r.Cost
		s.sides[0].correct(s.T, r.Correction) // so that nothing is renewed while other schedules run
	}
	return steps
}

func (s *schedule) take(i int) {
	r := rule(s.T, s.algorithm, s.limit)
	s.names++
	c := store.Check{Rule: r, Key: s.key, Cost: drawCost(s.T, s.limit, s.last), Hold: storetest.Hold(r)}
	name := "r" + strconv.Itoa(s.names)
	var got [2]algorithms.Decision
	for j, side := range s.sides {
		got[j] = side.take(s.T, c)
	}
	guess := &got[0]
	if i%16 == 0 {
		guess = nil // now and then the model searches for all
	}
	want := s.model.Take(s.limit, s.now, c.Cost, name, guess)
	if got[0] != want || got[1] != want {
		s.tell(vectors.Step{At: s.now, Cost: c.Cost, Name: name, Want: got[0]})
		s.Fatalf("the model says otherwise:\n  model %+v\n  Go    %+v\n  Lua   %+v\n%s", want, got[0], got[1], strings.Join(s.story, "\n"))
	}
	s.tell(vectors.Step{At: s.now, Cost: c.Cost, Name: name, Want: want})
	s.last = want
	if want.Allowed && c.Cost > 0 {
		s.newest, s.givenBack = max(s.newest, s.now), false
		s.charges = append(s.charges, charged{store.Correction{Check: c, At: want.Booked(), Turn: want.Turn()}, name})
	}
}

// correct corrects a charge: gives some or all of it back, or charges more.
//
// Not where the clock has gone back behind a charge, for what was given back then and
// what leaks out again the model does not know. And not every turn: where turns are less
// than a microsecond apart, which one is the last cannot be told from when it comes.
func (s *schedule) correct() {
	queued := s.limit.Mode == algorithms.ModeQueue
	if len(s.charges) == 0 || s.algorithm != "concurrency" && s.now < s.newest ||
		queued && s.limit.Events > s.limit.Window.Microseconds() {
		return
	}
	i := len(s.charges) - 1
	if rapid.IntRange(0, 3).Draw(s.T, "which") == 0 {
		i = rapid.IntRange(0, i).Draw(s.T, "charge")
	}
	c := s.charges[i]
	c.Delta = -c.Cost
	switch rapid.IntRange(0, 4).Draw(s.T, "how much") {
	case 0:
		c.Delta = -rapid.Int64Range(1, c.Cost).Draw(s.T, "part")
	case 1:
		c.Delta = max(1, drawCost(s.T, s.limit, s.last))
	}
	switch {
	case c.Delta < 0:
		s.charges = slices.Delete(s.charges, i, i+1)
	case queued:
		s.charges = nil // a debt of which nothing is left is behind nobody
	}
	if s.algorithm != "concurrency" {
		s.newest, s.earliest, s.givenBack = s.now, s.now, c.Delta < 0
		c.Rule = rule(s.T, s.algorithm, s.limit)
	}
	s.tell(vectors.Step{Do: vectors.Correct, At: s.now, Cost: c.Delta, Name: c.name})
	for _, side := range s.sides {
		side.correct(s.T, c.Correction)
	}
	s.model.Correct(c.Rule.Limit(), s.now, c.At, c.Delta, c.name)
}

func (s *schedule) renew() {
	if !s.renewing || len(s.charges) == 0 {
		return
	}
	c := rapid.SampledFrom(s.charges).Draw(s.T, "renew")
	s.tell(vectors.Step{Do: vectors.Renew, At: s.now, Cost: c.Cost, Name: c.name})
	for _, side := range s.sides {
		side.renew(s.T, c.Check)
	}
	s.model.Renew(c.Rule.Limit(), s.now, c.Cost, c.name)
}

// changeLimit draws another limit. What a rate or a window that changes makes of a
// bucket or of two counts, the model does not know, nor what a burst does to what was
// given back since the last charge, as of which it counts: TestGoEqualsLua has those.
func (s *schedule) changeLimit() {
	was := s.limit
	s.limit = drawLimit(s.T, s.algorithm)
	switch s.algorithm {
	case "token_bucket", "leaky_bucket":
		s.charges = nil // turns are known by when they come, and now come at other times
		burst, mode, wait := s.limit.Burst, s.limit.Mode, s.limit.MaxWait
		s.limit = was
		s.limit.Mode, s.limit.MaxWait = mode, wait
		changed := s.limit
		changed.Burst = burst
		a, _ := algorithms.Get(s.algorithm)
		if _, err := a.Prepare(changed); err == nil && !s.givenBack {
			s.limit = changed
		}
	case "sliding_window_counter":
		s.limit.Window = was.Window
	case "concurrency":
		if !s.renewing {
			s.limit.Lease = max(s.limit.Lease, longLease)
		}
	case "fixed_window":
		if rapid.IntRange(0, 3).Draw(s.T, "same windows") > 0 {
			events := s.limit.Events
			s.limit = was
			s.limit.Events = events
		}
	}
	s.story = append(s.story, vectors.Options(s.limit))
}

func (s *schedule) tell(step vectors.Step) { s.story = append(s.story, step.Line(s.start)) }
