package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// promise is what a limiter says it does, as the least time that a number of admissions of one client take. Admissions that take no
// less time than that are within the limit.
type promise struct {
	text   string
	limit  int
	window time.Duration

	// takes is for what was admitted, room for what was refused or announced. They differ where the kit cannot see what a limiter goes
	// by: in fixed windows, which begin when the limiter likes.
	takes, room func(admissions int) time.Duration
	whole       bool // takes and room are the same, so waits can be judged in both directions
}

// never is longer than every run, and -never before all of them.
const never = time.Duration(math.MaxInt64 / 4)

// newPromise reads one of three promises, with a limit in a window if it is not the one of all cases: "sliding", "fixed 10/1s".
func newPromise(text string, limit int, window time.Duration) (promise, error) {
	name, own, other := strings.Cut(text, " ")
	if other {
		var err error
		number, duration, _ := strings.Cut(own, "/")
		if limit, err = strconv.Atoi(number); err == nil {
			window, err = time.ParseDuration(duration)
		}
		if err != nil {
			return promise{}, fmt.Errorf("limit %q is not like 10/1s: %w", own, err)
		}
	}
	if limit < 1 || window <= 0 {
		return promise{}, fmt.Errorf("limit %d in %v: both must be above zero", limit, window)
	}
	sliding := func(n int) time.Duration {
		if n <= limit {
			return 0
		}
		return window
	}
	p := promise{text: text, limit: limit, window: window, takes: sliding, room: sliding, whole: true}
	switch name {
	case "sliding": // no window of that length, wherever it begins, has more
	case "fixed": // two windows that follow each other can each be used up around the moment between them
		p.takes = func(n int) time.Duration { return max(0, time.Duration((n+limit-1)/limit-2)*window) }
		p.whole = false
	case "bucket": // the limit at once, and then as many in each window
		p.takes = func(n int) time.Duration { return max(0, time.Duration(n-limit)) * window / time.Duration(limit) }
		p.room = p.takes
	default:
		return promise{}, fmt.Errorf("promise %q is none of sliding, fixed and bucket", name)
	}
	return p, nil
}

// fits returns when so many more admissions are within the limit, after those at the times, which are sorted, the latest first.
// The times may be bounds: with the earliest that each can have been the result is the earliest that it can be.
func fits(times []time.Duration, more int, least func(int) time.Duration) time.Duration {
	if least(more) > 0 {
		return never
	}
	at := -never
	for i, t := range times {
		if wait := least(i + 1 + more); wait > 0 {
			at = max(at, t+wait)
		}
	}
	return at
}
