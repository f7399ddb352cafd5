package algorithms

import (
	"cmp"
	"time"
)

// Calendar is a calendar window. Such windows differ in length: a day may have 23 or 25
// hours, a month 28 to 31 days, a year 365 or 366.
type Calendar int

// The calendar windows. Weeks begin on Monday.
const (
	Day Calendar = iota + 1
	Week
	Month
	Year
)

// String returns the word for the window in a config.
func (c Calendar) String() string { return [...]string{"none", "day", "week", "month", "year"}[c] }

// Bounds returns the starts of the window before that which contains t, of this window, and of the next n
// windows. A date that a time zone has skipped is not a window. Where clocks go back over
// midnight and show a date again, the window of that date does not begin again.
func (c Calendar) Bounds(t time.Time, location *time.Location, n int) (starts []time.Time) {
	t = t.In(cmp.Or(location, time.UTC))
	for i := -2; len(starts) < n+2; i++ {
		switch next := c.start(t, i); {
		case len(starts) > 0 && !next.After(starts[len(starts)-1]):
		case len(starts) == 2 && !next.After(t):
			starts[0], starts[1] = starts[1], next
		default:
			starts = append(starts, next)
		}
	}
	return starts
}

// start returns the start of a window: 0 is the one with the date of t, and 1 the one after it.
func (c Calendar) start(t time.Time, i int) time.Time {
	year, month, day := t.Date()
	switch c {
	case Week:
		day += 7*i - (int(t.Weekday())+6)%7
	case Month:
		month, day = month+time.Month(i), 1
	case Year:
		year, month, day = year+i, time.January, 1
	default:
		day += i
	}
	return midnight(year, month, day, t.Location())
}

// midnight returns the first instant of a date. It is not always 00:00: where clocks go
// forward at midnight, the day begins at 01:00. Where they go back over midnight, the day
// begins when they reach it the first time.
func midnight(year int, month time.Month, day int, location *time.Location) time.Time {
	wall := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	for t := wall.Add(-26 * time.Hour).In(location); ; {
		_, offset := t.Zone()
		_, end := t.ZoneBounds()
		if !end.IsZero() && !end.After(t) {
			// For a year that it knows only by a rule, package time assumes 365 days. On the
			// last day of a leap year the bound is therefore in the past. No offset changes
			// on that day.
			end = t.Add(24 * time.Hour)
		}
		at := wall.Add(-time.Duration(offset) * time.Second).In(location)
		if at.Before(t) {
			return t // the current offset began in the middle of the day
		}
		if end.IsZero() || at.Before(end) {
			return at
		}
		t = end
	}
}
