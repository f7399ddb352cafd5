package redisstore_test

import (
	"context"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// must ends a test that has an error.
func must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// side is one of several stores that must answer alike.
type side interface {
	take(t rapid.TB, c store.Check) algorithms.Decision
	adjust(t rapid.TB, r store.Adjustment)
	renew(t rapid.TB, c store.Check)
	reset(t rapid.TB, r *store.Rule, key string)
}

// storeSide is a store whose leases are renewed by the test alone.
type storeSide struct{ store.Store }

func (s storeSide) take(t rapid.TB, c store.Check) algorithms.Decision {
	var d [1]algorithms.Decision
	if err := s.Take(context.Background(), []store.Check{c}, d[:]); err != nil {
		t.Fatalf("%T: cost %d: %v", s.Store, c.Cost, err)
	}
	return d[0]
}

func (s storeSide) adjust(_ rapid.TB, r store.Adjustment) { s.Adjust(r) }

func (s storeSide) renew(t rapid.TB, _ store.Check) { t.Fatalf("%T renews when it wants to", s.Store) }

func (s storeSide) reset(t rapid.TB, r *store.Rule, key string) {
	must(t, s.Reset(context.Background(), r, key))
}

// redisSide waits until Redis has received an adjustment.
type redisSide struct {
	storeSide
	redis *redisstore.Store
}

func newRedisSide(s *redisstore.Store) redisSide { return redisSide{storeSide{s.Direct()}, s} }

func (s redisSide) adjust(_ rapid.TB, r store.Adjustment) {
	s.Adjust(r)
	s.redis.Flush()
}

func (s redisSide) renew(t rapid.TB, c store.Check) {
	must(t, s.redis.Renew(c))
}

// goSide is the algorithms in Go. Unlike the memory store it charges ahead, and it renews no lease by a clock that tests do not set.
type goSide struct {
	pair *pair
	keys map[string]*goKey // by rule
}

// goKey is what a key has, and since when.
type goKey struct {
	state  algorithms.State
	log    algorithms.Log
	leases algorithms.Leases
	since  int64
}

func (s *goSide) key(r *store.Rule) (k *goKey, now int64, p algorithms.Params) {
	now = s.pair.now.Load()
	if k = s.keys[r.ID()]; k == nil {
		k = &goKey{since: now}
	}
	k.since = min(k.since, now)
	return k, now, r.At(s.pair.today.Load()).Params
}

func (s *goSide) take(_ rapid.TB, c store.Check) (d algorithms.Decision) {
	k, now, p := s.key(c.Rule)
	lasts := int64(0)
	switch a := c.Rule.Algorithm().(type) {
	case algorithms.Counter:
		if k.state, d = a.Take(k.state, p, now, c.Cost); d.Allowed && c.Ahead > 0 {
			k.state, d.Units, lasts = a.Ahead(k.state, p, now, c.Cost, c.Ahead)
		}
	case algorithms.Recorder:
		if d = a.Decide(&k.log, p, now, c.Cost); d.Allowed {
			if d.Units, lasts = a.Record(&k.log, p, now, c.Cost, c.Ahead); d.Units > 0 && c.Cost > 0 {
				d.Ahead = time.Duration(lasts) * time.Microsecond
			}
		}
	case algorithms.Leaser:
		if d = a.Decide(&k.leases, p, now, c.Cost); d.Allowed && c.Cost > 0 {
			a.Lease(&k.leases, p, now, c.Cost, c.LeaseID)
		}
	}
	if d.At = now; d.Units > 0 {
		d.Lasts = time.Duration(lasts) * time.Microsecond
	}
	if d.Allowed && c.Cost+d.Units > 0 {
		s.keys[c.Rule.ID()] = k
	}
	return d
}

func (s *goSide) adjust(_ rapid.TB, a store.Adjustment) {
	k, now, p := s.key(a.Rule)
	switch of := a.Rule.Algorithm().(type) {
	case algorithms.Counter:
		before := k.state
		if a.OfBefore(k.since) {
			return
		}
		if k.state = of.Adjust(k.state, p, now, a.At, a.Turn, a.Delta); k.state == before {
			return
		}
	case algorithms.Recorder:
		of.Adjust(&k.log, p, now, a.At, a.Delta)
	case algorithms.Leaser:
		k.leases.GiveBack(a.LeaseID, -a.Delta)
	}
	s.keys[a.Rule.ID()] = k
}

func (s *goSide) reset(_ rapid.TB, r *store.Rule, _ string) { delete(s.keys, r.ID()) }

func (s *goSide) renew(_ rapid.TB, c store.Check) {
	k, now, p := s.key(c.Rule)
	c.Rule.Algorithm().(algorithms.Leaser).Lease(&k.leases, p, now, c.Cost, c.LeaseID)
	s.keys[c.Rule.ID()] = k
}

// drawLimit draws limits from one event in ten years to 10^12, with bursts near the events and
// far from them.
func drawLimit(t *rapid.T, algorithm string) algorithms.Limit {
	a, err := algorithms.Get(algorithm)
	must(t, err)
	_, leases := a.(algorithms.Leaser)
	for {
		l := algorithms.Limit{
			Events: rapid.OneOf(
				rapid.Int64Range(0, 12),
				rapid.Int64Range(1, 1000),
				rapid.Int64Range(1, 1_000_000_000),
				rapid.Int64Range(1, algorithms.MaxEvents),
			).Draw(t, "events"),
			Window: time.Duration(rapid.OneOf(
				rapid.SampledFrom([]int64{1e3, 1e6, 60e6, 3600e6, 86400e6, 365 * 86400e6}),
				rapid.Int64Range(1000, 10e6),
				rapid.Int64Range(1000, algorithms.MaxWindow.Microseconds()),
			).Draw(t, "window")) * time.Microsecond,
		}
		if leases {
			l.Events, l.Lease, l.Window = min(l.Events, 1+l.Events%30), algorithms.MinLease+l.Window%(algorithms.MaxLease-algorithms.MinLease), 0
		}
		drawOptions(t, algorithm, &l)
		if _, err := a.Prepare(l); err == nil {
			return l
		}
	}
}

// drawOptions draws the options that only some algorithms have.
func drawOptions(t *rapid.T, algorithm string, l *algorithms.Limit) {
	switch algorithm {
	case "token_bucket":
		l.Refill = rapid.SampledFrom([]string{"", algorithms.RefillSmooth, algorithms.RefillInterval}).Draw(t, "refill")
	case "leaky_bucket":
		l.Mode = rapid.SampledFrom([]string{"", algorithms.ModeMeter, algorithms.ModeQueue}).Draw(t, "mode")
		if l.Mode == algorithms.ModeQueue && rapid.Bool().Draw(t, "bounded") {
			l.MaxWait = time.Duration(rapid.Int64Range(1, 2*l.Window.Microseconds()).Draw(t, "max_wait")) * time.Microsecond
		}
	case "fixed_window":
		l.Align = rapid.SampledFrom([]string{"", algorithms.AlignClock, algorithms.AlignFirstRequest}).Draw(t, "align")
	}
	if strings.HasSuffix(algorithm, "_bucket") && rapid.Bool().Draw(t, "bursty") {
		l.Burst = rapid.OneOf(
			rapid.Int64Range(1, 20),
			rapid.Int64Range(1, 3*l.Events+1),
			rapid.Int64Range(1, algorithms.MaxEvents/1000),
		).Draw(t, "burst")
		l.Burst = min(l.Burst, algorithms.MaxEvents)
	}
}

// latest is how far schedules go. From there on, all waits of a limit and those after them are
// still exact in a double.
const latest = 1<<53 - 4*int64(algorithms.MaxWindow/time.Microsecond)

// drawGap draws the time until the next request: none, instants around those that the last
// decision named, idle times, and steps back.
func drawGap(t *rapid.T, l algorithms.Limit, last algorithms.Decision) int64 {
	window := length(l)
	named := []int64{last.NextAfter.Microseconds(), last.ResetAfter.Microseconds(), window}
	if !last.Allowed && last.RetryAfter != algorithms.Never {
		named = append(named, last.RetryAfter.Microseconds())
	}
	switch rapid.IntRange(0, 9).Draw(t, "gap") {
	case 0, 1:
		return 0
	case 2, 3:
		return rapid.Int64Range(0, 2*window/max(1, l.Events)+2).Draw(t, "interval")
	case 4, 5, 6:
		return rapid.SampledFrom(named).Draw(t, "named") + rapid.Int64Range(-1, 1).Draw(t, "off by")
	case 7:
		return rapid.Int64Range(0, window).Draw(t, "within")
	case 8:
		return rapid.Int64Range(0, 5*window).Draw(t, "idle")
	default:
		return -rapid.OneOf(
			rapid.Int64Range(0, 1e6),
			rapid.Int64Range(window-1, window+1), // up to this, time does not go back for a key
			rapid.Int64Range(0, 6*window),
			rapid.Int64Range(0, 100*3600e6),
			rapid.Int64Range(0, 3*365*24*3600e6),
		).Draw(t, "back")
	}
}

// length returns about how long a window or a lease is.
func length(l algorithms.Limit) int64 {
	days := map[algorithms.Calendar]int64{algorithms.Day: 1, algorithms.Week: 7, algorithms.Month: 30, algorithms.Year: 365}
	return max(l.Window.Microseconds(), l.Lease.Microseconds(), days[l.Calendar]*86400e6)
}

// drawCost draws costs around what is left and around the quota.
func drawCost(t *rapid.T, l algorithms.Limit, last algorithms.Decision) int64 {
	quota := max(l.Events, l.Burst)
	cost := rapid.OneOf(
		rapid.SampledFrom([]int64{0, 1, 1, 1, 1, 2, 3, 7}),
		rapid.Int64Range(last.Remaining-1, last.Remaining+1),
		rapid.Int64Range(0, quota+1),
		rapid.Just(algorithms.MaxEvents),
	).Draw(t, "cost")
	return max(0, cost)
}

func rule(t *rapid.T, algorithm string, limit algorithms.Limit) *store.Rule {
	a, err := algorithms.Get(algorithm)
	must(t, err)
	r, err := store.NewRule("zone", a, limit, 0)
	must(t, err)
	return r
}

// drawCalendar draws a window of the calendar, and an instant near one of its edges.
func drawCalendar(t *rapid.T, events int64) (limit algorithms.Limit, near int64) {
	odd := rapid.SampledFrom(edges).Draw(t, "day")
	location, err := time.LoadLocation(odd.place)
	must(t, err)
	day, err := time.ParseInLocation(time.DateOnly, odd.day, location)
	must(t, err)
	c := rapid.SampledFrom([]algorithms.Calendar{algorithms.Day, algorithms.Week, algorithms.Month, algorithms.Year}).Draw(t, "calendar")
	near = day.UnixMicro() + rapid.Int64Range(-4*86400e6, 3*86400e6).Draw(t, "from the day")
	return algorithms.Limit{Events: events, Calendar: c, Location: location}, near
}
