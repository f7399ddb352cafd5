package limits_test

import (
	"cmp"
	"slices"
	"testing"
)

// span is when something happened, as far as that can be known: at some instant from first to
// last, in microseconds.
type span struct{ first, last int64 }

// clockError is how much the readings of one clock by several processes may differ: the access
// log has floating-point seconds, and Redis reads the clock in its own way.
const clockError = 1000

// mostCertain returns how many events at least happened in some window: the largest
// number whose spans all lie within less than the window's length. An exact limiter
// keeps it at the limit or below, and no uncertainty can lift it above.
func mostCertain(events []span, window int64) (most int) {
	byFirst := slices.SortedFunc(slices.Values(events), func(a, b span) int { return cmp.Compare(a.first, b.first) })
	for i, from := range byFirst {
		n := 0
		for _, e := range byFirst[i:] {
			if e.first >= from.first+window {
				break
			}
			if e.last < from.first+window-clockError {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// mostPossible returns how many events at most can have been in the window before a
// refusal. If they are fewer than the limit, the refusal was wrong. The events must be
// in the order of first, and longest is the length of the longest span.
func mostPossible(events []span, refusal span, window, longest int64) (n int) {
	oldest := refusal.first - window - clockError
	at, _ := slices.BinarySearchFunc(events, oldest-longest, func(e span, first int64) int { return cmp.Compare(e.first, first) })
	for _, e := range events[at:] {
		if e.first > refusal.last+clockError {
			break
		}
		if e.last > oldest {
			n++
		}
	}
	return n
}

// TestWindowChecks: the checks of TestThreeLimitsOfTwoInstances find what they are meant to find.
func TestWindowChecks(t *testing.T) {
	t.Parallel()
	const ms, window = 1000, 1000 * 1000
	// Three events at 0, 400 and 800 ms, each known to 10 ms.
	events := []span{{0, 10 * ms}, {400 * ms, 410 * ms}, {800 * ms, 810 * ms}}
	if got := mostCertain(events, window); got != 3 {
		t.Errorf("in a window of 1 s: %d, want 3", got)
	}
	if got := mostCertain(events, 805*ms); got != 2 {
		t.Errorf("in a window of 805 ms: %d for certain, want 2: the third may be late", got)
	}
	if got := mostCertain(slices.Concat(events, []span{{1005 * ms, 1006 * ms}}), window); got != 3 {
		t.Errorf("a window later: %d, want 3", got)
	}
	for _, step := range []struct {
		refusal span
		want    int
	}{
		{span{820 * ms, 830 * ms}, 3},
		{span{805 * ms, 830 * ms}, 3},
		{span{500 * ms, 600 * ms}, 2},
		{span{1000 * ms, 1001 * ms}, 3}, // the first may have been at 10 ms
		{span{1050 * ms, 1060 * ms}, 2},
		{span{3000 * ms, 3001 * ms}, 0},
	} {
		if got := mostPossible(events, step.refusal, window, 10*ms); got != step.want {
			t.Errorf("before a refusal at %v: %d, want %d", step.refusal, got, step.want)
		}
	}
}
