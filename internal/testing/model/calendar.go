package model

import (
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// Day is a date at a place, and the first instant at which clocks there show it.
type Day struct {
	Year  int
	Month time.Month
	Day   int
	Start time.Time
}

// Days walks through a year and notes each date that clocks have not shown before:
// hour by hour, and minute by minute through hours in which the date or the offset
// changes. So a date that is left out has no day, and one that comes twice begins the
// first time.
func Days(location *time.Location, year int) (days []Day) {
	from, to := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(year+1, 1, 1, 0, 0, 0, 0, time.UTC)
	seen := make(map[Day]bool)
	look := func(t time.Time) {
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
		look(hour)
		if offset(hour) == offset(next) && hour.Day() == next.Day() {
			continue
		}
		for t := hour; t.Before(next); t = t.Add(step(t)) {
			look(t)
		}
	}
	return days
}

func offset(t time.Time) int {
	_, seconds := t.Zone()
	return seconds
}

// step is a minute, or a second where clocks differ from UTC by odd seconds.
func step(t time.Time) time.Duration {
	if offset(t)%60 != 0 {
		return time.Second
	}
	return time.Minute
}

// Window is the window around t, both in microseconds: from the first day that is in
// another week or month than the day before, to the next such day.
func Window(c algorithms.Calendar, location *time.Location, t int64) (start, end int64) {
	if location == nil {
		location = time.UTC
	}
	year := time.UnixMicro(t).UTC().Year()
	all := slices.Concat(starts(c, location, year-1), starts(c, location, year), starts(c, location, year+1))
	next := sort.Search(len(all), func(i int) bool { return all[i] > t })
	return all[next-1], all[next]
}

// walked are the starts of windows in the years walked through so far.
var walked sync.Map

type walk struct {
	calendar algorithms.Calendar
	place    string
	year     int
}

func starts(c algorithms.Calendar, location *time.Location, year int) (starts []int64) {
	key := walk{c, location.String(), year}
	if known, ok := walked.Load(key); ok {
		return known.([]int64)
	}
	before := Days(location, year-1)
	last := number(c, before[len(before)-1])
	for _, d := range Days(location, year) {
		if n := number(c, d); n != last {
			starts = append(starts, d.Start.UnixMicro())
			last = n
		}
	}
	walked.Store(key, starts)
	return starts
}

// number counts days, weeks or months.
func number(c algorithms.Calendar, d Day) int {
	monday := time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
	since := int(time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC).Sub(monday) / (24 * time.Hour))
	switch c {
	case algorithms.Day:
		return since
	case algorithms.Week:
		return since / 7
	}
	return d.Year*12 + int(d.Month)
}
