package lend

import "time"

// demand estimates what requests will cost, from when the last ones have come.
type demand struct {
	since    time.Duration // when the count began
	last     time.Duration // when the last request came
	requests int64
	cost     int64

	// From the counts before, per second.
	often, rate float64
}

// add counts a cost.
func (d *demand) add(now time.Duration, cost int64, span time.Duration) {
	d.roll(now, span)
	d.requests++
	d.cost += cost
	d.last = now
}

// roll begins a new count after a span.
func (d *demand) roll(now, span time.Duration) {
	elapsed := now - d.since
	if elapsed < span {
		return
	}
	often, rate := float64(d.requests)/elapsed.Seconds(), float64(d.cost)/elapsed.Seconds()
	switch {
	case elapsed >= 4*span:
		often, rate = 0, 0
	case d.often > 0:
		often, rate = (d.often+often)/2, (d.rate+rate)/2
	}
	d.often, d.rate = often, rate
	d.since, d.requests, d.cost = now, 0, 0
}

// want returns what to hold: the cost of two spans.
func (d *demand) want(now, span time.Duration) int64 {
	d.roll(now, span)
	return 2 * max(int64(d.rate*span.Seconds()), d.cost)
}

// come returns how many requests come in a time. What came in a small part of the span says little.
func (d *demand) come(now, period, span, in time.Duration) float64 {
	often := float64(d.requests-1) / max(now-d.since, period, span/4).Seconds()
	return max(d.often, often) * in.Seconds()
}

// next returns the span in which enough requests come for a loan, from period to most.
func (d *demand) next(now, period, span, most time.Duration) time.Duration {
	if come := d.come(now, period, span, most); come > enough {
		return max(period, time.Duration(float64(most)*enough/come))
	}
	return most
}

// idle reports whether no request came for a time.
func (d *demand) idle(now, while time.Duration) bool { return now-d.last >= while }
