package redisstore_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/model"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

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
		if err != nil {
			t.Fatal(err)
		}
		day, err := time.ParseInLocation(time.DateOnly, edge.day, location)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, calendar := range []algorithms.Calendar{algorithms.Day, algorithms.Week, algorithms.Month, algorithms.Year} {
			limit := algorithms.Limit{Events: 2, Calendar: calendar, Location: location}
			begins, _ := model.Window(calendar, location, day.UnixMicro())
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
