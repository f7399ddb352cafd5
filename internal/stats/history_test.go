package stats

import (
	"math"
	"slices"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

// TestHistory: samples are told apart by their numbers, also where some are missing, and old ones are forgotten.
func TestHistory(t *testing.T) {
	var h History
	var totals [outcome.Count]uint64
	expect := func(when string, wantNewest int64, want ...Part) {
		t.Helper()
		if got, newest := h.Read(); !slices.Equal(got, want) || newest != wantNewest {
			t.Errorf("%s: %v up to %d, want %v up to %d", when, got, newest, want, wantNewest)
		}
	}
	h.Sample(7, totals)
	expect("without requests", 7)
	totals[outcome.Allowed], totals[outcome.Limited], totals[outcome.DryRun] = 5, 2, 1
	h.Sample(8, totals)
	totals[outcome.Banned] = 4
	h.Sample(8, totals)
	expect("two samples of a number", 8, Part{12, 7})
	totals[outcome.Allowed] = 6
	h.Sample(11, totals)
	expect("after a pause", 11, Part{12, 7}, Part{}, Part{}, Part{Requests: 1})
	h.Sample(8+HistoryParts, totals)
	expect("when the first is too old", 8+HistoryParts, append([]Part{{Requests: 1}}, make([]Part, HistoryParts-3)...)...)
	h.Sample(11+HistoryParts, totals)
	expect("when all are too old", 11+HistoryParts)
	totals[outcome.Allowed] += 1 << 32
	totals[outcome.Allowed] += 3
	h.Sample(20000, totals)
	expect("after a number that does not fit", 20000, Part{Requests: 3})
}

// TestRate: the rate is of the last minute, or of the time since the first sample, and forgets what is older.
func TestRate(t *testing.T) {
	var h History
	var totals [outcome.Count]uint64
	for _, step := range []struct {
		number int64
		came   uint64
		want   float64
	}{
		{0, 0, 0},       // nothing yet
		{1, 50, 5},      // in 10 s
		{3, 50, 5},      // in 20 s
		{11, 20, 2},     // in a minute
		{12, 0, 2},      // the part 0 was empty
		{13, 0, 7. / 6}, // the first 50 are too old
		{25, 0, 0},
		{30, 6, 0.1},
	} {
		totals[outcome.Limited] += step.came
		h.Sample(step.number, totals)
		if got := h.Rate(); math.Abs(got-step.want) > 1e-9 {
			t.Errorf("at sample %d: %g requests a second, want %g", step.number, got, step.want)
		}
	}
}
