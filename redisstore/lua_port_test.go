package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/model"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestGoEqualsLua runs random schedules through the memory store, which runs the algorithms in Go, and through the Redis store,
// which runs their Lua ports, and compares every field of every decision. Requests are of one zone whose limit changes, or of
// two zones with overrides that come and go and random bans. Charges are adjusted whatever rules a key has by then.
func TestGoEqualsLua(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	for _, name := range algorithms.Names() {
		t.Run(name, func(t *testing.T) {
			pair := newPair(t, server)
			lua := newRedisSide(pair.redis)
			run, banned := 0, 0
			deep.Property(t, 34, func(rt *rapid.T) {
				run++
				banned += pair.schedule(rt, lua, name, name+strconv.Itoa(run))
			})
			if t.Logf("%d bans", banned); banned == 0 {
				t.Error("no ban began")
			}
		})
	}
}

// pair is the same store twice: one in Go, and one in Lua if there is a server.
type pair struct {
	memory *memorystore.Store
	redis  *redisstore.Store

	redisServer *redistest.Server

	now, today atomic.Int64
	setNow     func(int64)
}

func newPair(t *testing.T, server *redistest.Server) *pair {
	p := &pair{redisServer: server, setNow: func(int64) {}}
	if server != nil {
		p.redis, p.setNow = openWithClock(t, server)
		p.redis.SetToday(p.today.Load)
	}
	var err error
	p.memory, err = memorystore.New(memorystore.Options{Now: p.now.Load})
	must(t, err)
	t.Cleanup(func() { _ = p.memory.Close() })
	return p
}

// set sets all clocks. The skew is the difference between this process's idea of the date and
// Redis's.
func (p *pair) set(now, skew int64) {
	p.now.Store(now)
	p.today.Store(now + skew)
	p.setNow(now)
}

// schedule draws limits and a run of requests, and returns how many bans began.
func (p *pair) schedule(t *rapid.T, lua side, algorithm, run string) (bans int) {
	limits, keyRules := []algorithms.Limit{drawUnrenewed(t, algorithm)}, (*store.KeyRules)(nil)
	several, most := rapid.Bool().Draw(t, "several"), int64(algorithms.MaxEvents)
	if several {
		limits, keyRules, most = append(limits, drawUnrenewed(t, algorithm)), drawKeyRules(t), 20_000
	}
	var charged []store.Adjustment
	now := storetest.Start + rapid.Int64Range(0, 1e9).Draw(t, "offset")
	var last algorithms.Decision
	for i := range rapid.IntRange(30, 90).Draw(t, "steps") {
		switch changes := rapid.IntRange(0, 19).Draw(t, "change") == 0; {
		case changes && several:
			keyRules = drawKeyRules(t)
		case changes:
			limits[0] = drawUnrenewed(t, algorithm)
		}
		if several {
			now += drawShortGap(t, last)
		} else {
			now = min(max(now+drawGap(t, limits[0], last), storetest.Start-1e12), latest)
		}
		p.set(now, 0)
		if len(charged) > 0 && rapid.IntRange(0, 3).Draw(t, "do") == 0 {
			c := drawAdjustment(t, charged, limits[0], last)
			c.Delta = min(c.Delta, most)
			p.memory.Adjust(c)
			lua.adjust(t, c)
		}
		var checks []store.Check
		for j, limit := range limits {
			r := rule(t, algorithm, limit)
			c := store.Check{Rule: r, Key: fmt.Sprint(run, " ", j), Cost: drawCost(t, limit, last), LeaseID: storetest.LeaseID(r), KeyRules: keyRules}
			c.Independent = several && rapid.IntRange(0, 9).Draw(t, "apart") == 0
			c.Peek = several && rapid.IntRange(0, 9).Draw(t, "peek") == 0
			checks = append(checks, c)
		}
		if several {
			p.change(t, &checks[rapid.IntRange(0, 1).Draw(t, "whose")])
		}
		inGo, inLua := make([]algorithms.Decision, len(checks)), make([]algorithms.Decision, len(checks))
		must(t, errors.Join(p.memory.Take(context.Background(), checks, inGo), p.redis.Take(context.Background(), checks, inLua)))
		if !slices.Equal(inGo, inLua) {
			t.Fatalf("step %d at %d: %+v, %+v:\n  Go  %+v\n  Lua %+v", i, now, limits, keyRules, inGo, inLua)
		}
		refused := false // a check that is not independent, so no other such check is charged
		for j, d := range inGo {
			refused = refused || !d.Allowed && !checks[j].Independent
		}
		for j, d := range inGo {
			if d.BanBegins {
				bans++
			}
			if d.Allowed && (checks[j].Independent || !refused) && !d.Exempt && checks[j].Cost > 0 && !checks[j].Peek {
				charged = append(charged, store.Adjustment{Check: checks[j], At: d.Booked(), Turn: d.Turn(), Delta: -checks[j].Cost, Override: d.Override})
			}
		}
		last = rapid.SampledFrom(inGo).Draw(t, "of")
	}
	p.memory.Adjust(charged...) // otherwise it would be renewed while other schedules run
	return bans
}

// drawShortGap draws the time until the next request where bans last some seconds.
func drawShortGap(t *rapid.T, last algorithms.Decision) int64 {
	switch gap := last.RetryAfter; {
	case rapid.Bool().Draw(t, "at once"):
		return 0
	case gap != algorithms.Never && gap < 1000*time.Hour && rapid.Bool().Draw(t, "when told"):
		return gap.Microseconds() - int64(rapid.IntRange(0, 1).Draw(t, "early"))
	}
	return rapid.Int64Range(-1e6, 1e8).Draw(t, "gap")
}

// drawAdjustment draws any change of any charge, under the limit that charged it or the one in
// force, if both count in the same state.
func drawAdjustment(t *rapid.T, charged []store.Adjustment, limit algorithms.Limit, last algorithms.Decision) store.Adjustment {
	c := charged[len(charged)-1]
	if rapid.Bool().Draw(t, "older") {
		c = rapid.SampledFrom(charged).Draw(t, "charge")
	}
	made := rule(t, c.Rule.Algorithm().Name(), limit)
	if made.ID() == c.Rule.ID() && rapid.Bool().Draw(t, "by the limit in force") {
		c.Rule = made
	}
	c.Delta = -c.Cost
	switch rapid.IntRange(0, 3).Draw(t, "how much") {
	case 0:
		c.Delta = -max(1, drawCost(t, limit, last))
	case 1:
		c.Delta = max(1, drawCost(t, limit, last))
	}
	return c
}

// drawUnrenewed draws limits with leases that no store renews by itself before a schedule is
// over, because it would do so by a clock that tests do not set.
func drawUnrenewed(t *rapid.T, algorithm string) algorithms.Limit {
	l := drawLimit(t, algorithm)
	if algorithm == "concurrency" {
		l.Lease = max(l.Lease, longLease)
	}
	return l
}

// edges are days that begin or end in an odd way, in places where no two are alike.
var edges = []struct{ place, day, what string }{
	{"UTC", "2024-02-29", "a leap day"},
	{"UTC", "2027-01-01", "a year begins"},
	{"America/Sao_Paulo", "2018-02-18", "the day before ends with an hour twice"},
	{"America/Sao_Paulo", "2018-11-04", "it begins at 01:00"},
	{"Europe/London", "2026-03-29", "23 hours"},
	{"Europe/London", "2026-10-25", "25 hours"},
	{"Australia/Lord_Howe", "2026-04-05", "half an hour more"},
	{"Australia/Lord_Howe", "2026-10-04", "half an hour less"},
	{"Pacific/Apia", "2011-12-31", "the day before is left out"},
	{"Africa/Casablanca", "2026-03-22", "an hour more for a month"},
	{"Antarctica/Troll", "2026-03-29", "two hours less"},
	{"Antarctica/Troll", "2026-10-25", "two hours more"},
	{"Asia/Kathmandu", "1986-01-01", "it begins at 00:15: the offset grows by a quarter of an hour"},
	{"America/St_Johns", "2010-11-07", "it begins, goes on as the day before at 00:01, and begins again"},
	{"America/St_Johns", "2011-03-13", "from 00:01 to 01:01"},
	{"America/Havana", "2026-11-01", "the hour from midnight comes twice"},
}

// TestCalendarEdges: when the clock steps over an edge of the calendar, the memory store, the Redis store and the model
// say the same, whatever date this process has, within most of a day.
func TestCalendarEdges(t *testing.T) {
	t.Parallel()
	p := newPair(t, redistest.Shared(t))
	const hour = int64(time.Hour / time.Microsecond)
	skews := [...]int64{0, -20 * hour, 20 * hour}
	steps := []int64{-1, 1, -hour, hour, -24 * hour, 24 * hour, -24*hour - 1, -25*hour - 1, -49 * hour, -8 * 24 * hour}
	for _, edge := range edges {
		location, err := time.LoadLocation(edge.place)
		must(t, err)
		day, err := time.ParseInLocation(time.DateOnly, edge.day, location)
		must(t, err)
		n := 0
		for _, calendar := range []algorithms.Calendar{algorithms.Day, algorithms.Week, algorithms.Month, algorithms.Year} {
			limit := algorithms.Limit{Events: 2, Calendar: calendar, Location: location}
			begins := calendar.Bounds(day, location, 1)[1].UnixMicro()
			for _, from := range []int64{begins, begins + 24*hour} {
				for _, step := range steps {
					for _, skew := range skews {
						if n++; calendar != algorithms.Day && skew != skews[n/len(skews)%len(skews)] {
							continue // one of them is enough
						}
						overEdge(t, p, fmt.Sprintf("%s %s: %s, %d", edge.place, edge.day, edge.what, n), limit, from, step, skew, n%2 == 0)
					}
				}
			}
		}
	}
}

// overEdge asks before and after a step of the clock, and once it is back, by one rule or by one that is new each time.
func overEdge(t *testing.T, p *pair, name string, limit algorithms.Limit, from, step, skew int64, anew bool) {
	t.Helper()
	slow, r := model.New("fixed_window"), storetest.Rule(t, "zone", "fixed_window", limit)
	for i, ask := range []struct{ now, cost int64 }{{from, 1}, {from + step, 0}, {from + step, 1}, {from, 0}, {from, 1}} {
		p.set(ask.now, skew)
		if anew {
			r = storetest.Rule(t, "zone", "fixed_window", limit)
		}
		c := store.Check{Rule: r, Key: name, Cost: ask.cost}
		memory := storeSide{p.memory}.take(t, c)
		lua := storeSide{p.redis}.take(t, c)
		if want := slow.Take(limit, ask.now, ask.cost, strconv.Itoa(i), &memory); memory != want || lua != want {
			t.Errorf("%s: %v, step %v, skew %v, request %d:\n  model %+v\n  Go    %+v\n  Lua   %+v", name, limit.Calendar,
				time.Duration(step)*time.Microsecond, time.Duration(skew)*time.Microsecond, i, want, memory, lua)
			return
		}
	}
}
