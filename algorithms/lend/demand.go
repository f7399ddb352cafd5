package lend

import "time"

// demand estimates what requests will cost in the next period, from what they have cost in the
// last ones.
type demand struct {
	since   time.Duration // when the count began
	count   int64
	average int64 // for each period
}

// add counts a cost.
func (d *demand) add(now time.Duration, cost int64, period time.Duration) {
	d.roll(now, period)
	d.count += cost
}

// roll begins a new count after a period.
func (d *demand) roll(now, period time.Duration) {
	elapsed := now - d.since
	switch {
	case elapsed < period:
		return
	case elapsed >= 4*period:
		d.average = 0
	default:
		d.average = (d.average + d.count*int64(period)/int64(elapsed)) / 2
	}
	d.since, d.count = now, 0
}

// want returns what to hold: the cost of two periods.
func (d *demand) want(now, period time.Duration) int64 {
	d.roll(now, period)
	return 2 * max(d.average, d.count)
}

// idle reports whether nothing was counted for a period.
func (d *demand) idle(now, period time.Duration) bool { return now-d.since >= period && d.count == 0 }
