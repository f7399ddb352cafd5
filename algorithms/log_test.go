package algorithms_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

// TestLog compares the ring with a slice of charges.
func TestLog(t *testing.T) {
	deep.Property(t, func(t *rapid.T) {
		var log algorithms.Log
		var charges slice
		now := int64(1)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now += rapid.Int64Range(0, 3).Draw(t, "gap")
			switch rapid.IntRange(0, 6).Draw(t, "do") {
			case 0, 1, 2:
				cost := rapid.SampledFrom([]int64{1, 1, 1, 2, 7, 1e12}).Draw(t, "cost")
				log.Append(now, cost)
				charges = append(charges, charge{now, cost})
			case 3:
				n := rapid.IntRange(0, log.Len()).Draw(t, "forget")
				charges = charges.forget(log.Events(0, n), func(charge) bool { return true })
				log.Forget(n)
			case 4:
				if all := charges.events(0, len(charges)); all > 0 {
					n := rapid.Int64Range(0, all-1).Draw(t, "events")
					log.ForgetEvents(n)
					charges = charges.forget(n, func(charge) bool { return true })
				}
			case 5:
				at, n := rapid.Int64Range(1, now).Draw(t, "at"), rapid.SampledFrom([]int64{1, 2, 6, 8, 2e12}).Draw(t, "back")
				log.Remove(at, n)
				charges = charges.forget(n, func(c charge) bool { return c.at == at })
			case 6:
				clone := log.Clone()
				clone.Append(now+100, 5)
				clone.Forget(1)
				clone.Remove(now+100, 2)
			}
			charges.compare(t, &log, rapid.Int64Range(0, now+2).Draw(t, "edge"))
		}
	})
}

// slice is the simplest form of a log.
type slice []charge

type charge struct{ at, cost int64 }

func (s slice) events(i, j int) (n int64) {
	for _, c := range s[i:j] {
		n += c.cost
	}
	return n
}

// forget takes n events off the charges that match.
func (s slice) forget(n int64, match func(charge) bool) (left slice) {
	for _, c := range s {
		if match(c) {
			gone := min(n, c.cost)
			c.cost, n = c.cost-gone, n-gone
		}
		if c.cost > 0 {
			left = append(left, c)
		}
	}
	return left
}

// before returns how many events are earlier than t.
func (s slice) before(t int64) (n int64) {
	for _, c := range s {
		if c.at < t {
			n += c.cost
		}
	}
	return n
}

// compare compares events and not charges, because the log may merge charges of one time.
func (s slice) compare(t *rapid.T, log *algorithms.Log, edge int64) {
	all := s.events(0, len(s))
	if got := log.Events(0, log.Len()); got != all {
		t.Fatalf("%d events, want %d", got, all)
	}
	if got, want := log.Events(0, log.Before(edge)), s.before(edge); got != want {
		t.Fatalf("%d events before %d, want %d", got, edge, want)
	}
	first := int64(0)
	for _, c := range s {
		for _, n := range []int64{first, first + c.cost - 1} {
			if i := log.Holding(0, n); log.At(i) != c.at {
				t.Fatalf("event %d is of %d, want %d", n, log.At(i), c.at)
			}
		}
		first += c.cost
	}
	newest := int64(0)
	if len(s) > 0 {
		newest = s[len(s)-1].at
	}
	if log.Newest() != newest {
		t.Fatalf("newest %d, want %d", log.Newest(), newest)
	}
}

// TestLogTakesWhatItHolds: the memory of a log depends on its number of charges. It depends
// neither on the limit, which in mholt/caddy-ratelimit took 4.8 GB, nor on the costs.
func TestLogTakesWhatItHolds(t *testing.T) {
	for _, cost := range []int64{1, 50_000_000} {
		var log algorithms.Log
		for i := range int64(10_000) {
			log.Append(i, cost)
			if room, held := log.Room(), log.Len(); room > held+held/4+1 {
				t.Fatalf("room for %d charges, %d held", room, held)
			}
		}
		for log.Len() > 0 {
			log.Forget(min(log.Len(), 777))
			if room, held := log.Room(), log.Len(); room > 2*held+1 {
				t.Fatalf("room for %d charges after some are forgotten, %d held", room, held)
			}
		}
	}
}
