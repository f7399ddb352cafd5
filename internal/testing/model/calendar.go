package model

import (
	"sort"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// Day is a date in a time zone, and the first instant at which clocks there show it.
type Day struct {
	Year  int
	Month time.Month
	Day   int
	Start time.Time
}

// Days walks through a year and collects each date that clocks have not shown before. It goes
// hour by hour, and minute by minute through hours in which the date or the offset changes.
// So a date that a time zone skips is not in the result, and a date that comes twice begins
// the first time.
func Days(location *time.Location, year int) (days []Day) {
	from, to := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(year+1, 1, 1, 0, 0, 0, 0, time.UTC)
	seen := make(map[Day]bool)
	visit := func(t time.Time) {
		var d Day
		d.Year, d.Month, d.Day = t.Date()
		if seen[d] {
			return
		}
		seen[d] = true
		if d.Start = t; !t.Before(from) && t.Before(to) {
			days = append(days, d)
		}
	}
	for hour := from.Add(-72 * time.Hour).In(location); hour.Before(to); hour = hour.Add(time.Hour) {
		next := hour.Add(time.Hour)
		visit(hour)
		if offset(hour) == offset(next) && hour.Day() == next.Day() {
			continue
		}
		for t := hour; t.Before(next); t = t.Add(step(t)) {
			visit(t)
		}
	}
	return days
}

func offset(t time.Time) int {
	_, seconds := t.Zone()
	return seconds
}

// step returns a minute, or a second where the offset from UTC is not in whole minutes.
func step(t time.Time) time.Duration {
	if offset(t)%60 != 0 {
		return time.Second
	}
	return time.Minute
}

// Window returns the calendar window that contains t, in microseconds: from the first day
// whose week, month or year is not that of the day before, to the next such day.
func Window(c algorithms.Calendar, location *time.Location, t int64) (start, end int64) {
	if location == nil {
		location = time.UTC
	}
	year := time.UnixMicro(t).UTC().Year()
	var all []int64
	for y := year - 1; y <= year+2; y++ { // there it may be the next year already
		all = append(all, starts(c, location, y)...)
	}
	next := sort.Search(len(all), func(i int) bool { return all[i] > t })
	return all[next-1], all[next]
}

// known caches the starts of windows by year.
var known sync.Map

type knownYear struct {
	calendar algorithms.Calendar
	place    string
	year     int
}

func starts(c algorithms.Calendar, location *time.Location, year int) (starts []int64) {
	key := knownYear{c, location.String(), year}
	if starts, ok := known.Load(key); ok {
		return starts.([]int64)
	}
	before := Days(location, year-1)
	last := number(c, before[len(before)-1])
	for _, d := range Days(location, year) {
		if n := number(c, d); n != last {
			starts = append(starts, d.Start.UnixMicro())
			last = n
		}
	}
	known.Store(key, starts)
	return starts
}

// number numbers the days, weeks, months or years.
func number(c algorithms.Calendar, d Day) int {
	monday := time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
	since := int(time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC).Sub(monday) / (24 * time.Hour))
	switch c {
	case algorithms.Day:
		return since
	case algorithms.Week:
		return since / 7
	case algorithms.Year:
		return d.Year
	}
	return d.Year*12 + int(d.Month)
}
