package redisstore_test

import (
	"math/big"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// remaining checks that what is used and what remains add up to the quota, where the used part
// can be known without knowing how it comes back.
func (w *witness) remaining(d algorithms.Decision) {
	used := int64(0)
	for _, one := range w.admitted {
		counts := false
		switch {
		case w.algorithm == "sliding_window_log":
			counts = w.now-one.at < w.limit.Window.Microseconds()
		case w.algorithm == "fixed_window" && w.limit.Calendar != 0 && w.limit.Location.String() == "America/St_Johns":
			return // clocks there show a date again after the next one has begun
		case w.algorithm == "fixed_window":
			counts = w.window(one.at) == w.window(w.now)
		case w.algorithm == "concurrency":
			counts = one.ends > w.now
		default:
			return
		}
		if counts {
			used += one.Cost
		}
	}
	if d.Remaining+used != d.Quota {
		w.Fatalf("%d remain and %d are used of %d", d.Remaining, used, d.Quota)
	}
}

// window names the fixed window of t.
func (w *witness) window(t int64) (name int64) {
	switch {
	case w.limit.Calendar != 0:
		day := time.UnixMicro(t).In(w.limit.Location)
		year, week := day.ISOWeek()
		return map[algorithms.Calendar]int64{
			algorithms.Day:   int64(day.Year()*1000 + day.YearDay()),
			algorithms.Week:  int64(year*1000 + week),
			algorithms.Month: int64(day.Year()*1000 + int(day.Month())),
			algorithms.Year:  int64(day.Year()),
		}[w.limit.Calendar]
	case w.limit.Align != algorithms.AlignFirstRequest:
		return t / w.limit.Window.Microseconds()
	}
	for _, one := range w.admitted {
		if one.at <= t && one.at-name >= w.limit.Window.Microseconds() {
			name = one.at
		}
	}
	if t-name >= w.limit.Window.Microseconds() {
		return t
	}
	return name
}

// promises checks what the algorithm promises of any stretch of time from one admitted request to
// another, over the whole schedule.
func (w *witness) promises() {
	for i, first := range w.admitted {
		sum := int64(0) // of the costs from the first request to the last
		for _, last := range w.admitted[i:] {
			behind := sum // without the cost of the last one
			sum += last.Cost
			w.between(first, last, sum, behind)
		}
	}
}

func (w *witness) between(first, last admitted, sum, behind int64) {
	elapsed, window := last.at-first.at, w.limit.Window.Microseconds()
	most := new(big.Rat)
	switch {
	case w.algorithm == "sliding_window_log" || w.algorithm == "sliding_window_counter":
		if elapsed >= window {
			return
		}
		most.SetInt64(w.limit.Events)
		if w.algorithm == "sliding_window_counter" {
			if elapsed = last.at/window - first.at/window; elapsed > 0 {
				most.SetInt64(2 * w.limit.Events) // it estimates, so twice the limit may pass over an edge
			}
		}
	case strings.HasSuffix(w.algorithm, "_bucket"):
		back := big.NewRat(elapsed, window)
		if w.limit.Refill == algorithms.RefillInterval {
			back.SetInt64(elapsed/window + 1)
		}
		most.Mul(back, big.NewRat(w.limit.Events, 1))
		most.Add(most, big.NewRat(max(w.limit.Burst, 0), 1))
		if w.limit.Burst == 0 {
			most.Add(most, big.NewRat(w.limit.Events, 1))
		}
		w.spaced(first, last, behind)
	default:
		return // every look checks that already
	}
	if most.Cmp(big.NewRat(sum, 1)) < 0 {
		w.Fatalf("%d from %d to %d, at most %v", sum, first.at, last.at, most)
	}
}

// spaced checks a queue: everything that has a turn before another one leaks out before that one
// leaves. Turns are rounded up to a microsecond.
func (w *witness) spaced(first, last admitted, cost int64) {
	if w.limit.Mode != algorithms.ModeQueue {
		return
	}
	leaks := new(big.Rat).Mul(big.NewRat(cost, 1), big.NewRat(w.limit.Window.Microseconds(), w.limit.Events))
	if got := big.NewRat(last.Turn-first.Turn+1, 1); cost > 0 && got.Cmp(leaks) <= 0 {
		w.Fatalf("turns at %d and %d, but %d events between", first.Turn, last.Turn, cost)
	}
	if wait := last.Turn - last.at; w.limit.MaxWait > 0 && wait > w.limit.MaxWait.Microseconds() {
		w.Fatalf("a wait of %d", wait)
	}
}
