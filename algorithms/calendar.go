package algorithms

import "time"

// Calendar is a window of the calendar. Such windows differ in length: a day may have
// 23 or 25 hours, a month 28 to 31 days.
type Calendar int

// The windows of the calendar. Weeks begin on Monday.
const (
	Day Calendar = iota + 1
	Week
	Month
)

// String is the word for the window in a config.
func (c Calendar) String() string { return [...]string{"none", "day", "week", "month"}[c] }

// Bounds returns the start of the window around t, and the starts of the next n ones. A
// date that a place has left out is no window; one that clocks show again, after the
// next one has begun, does not come back.
func (c Calendar) Bounds(t time.Time, location *time.Location, n int) []time.Time {
	if location == nil {
		location = time.UTC
	}
	t = t.In(location)
	year, month, day := t.Date()
	step := func(i int) time.Time { return midnight(year, month, day+i, location) }
	switch c {
	case Week:
		day -= (int(t.Weekday()) + 6) % 7
		step = func(i int) time.Time { return midnight(year, month, day+7*i, location) }
	case Month:
		step = func(i int) time.Time { return midnight(year, month+time.Month(i), 1, location) }
	}
	bounds := []time.Time{step(0)}
	for i := 1; len(bounds) < n+2; i++ {
		switch next := step(i); {
		case !next.After(t):
			bounds[0] = next
		case next.After(bounds[len(bounds)-1]):
			bounds = append(bounds, next)
		}
	}
	return bounds[:n+1]
}

// midnight is the first instant of a date. It is not always 00:00: where clocks go
// forward at midnight the day begins at 01:00, and where they go back over it the day
// begins the first time.
func midnight(year int, month time.Month, day int, location *time.Location) time.Time {
	wall := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	for t := wall.Add(-26 * time.Hour).In(location); ; {
		_, offset := t.Zone()
		_, end := t.ZoneBounds()
		if !end.IsZero() && !end.After(t) {
			// By package time a year that it knows only by a rule has 365 days: on the last
			// day of a leap year the bound is behind. No offset changes then.
			end = t.Add(24 * time.Hour)
		}
		at := wall.Add(-time.Duration(offset) * time.Second).In(location)
		if at.Before(t) {
			return t // this stretch of one offset began in the middle of the day
		}
		if end.IsZero() || at.Before(end) {
			return at
		}
		t = end
	}
}
