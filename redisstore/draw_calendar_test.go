package redisstore_test

import (
	"time"

	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// oddDays are days on which the calendar has something special.
var oddDays = []struct{ place, day, what string }{
	{"America/Sao_Paulo", "2018-11-04", "begins at 01:00: clocks go forward at midnight"},
	{"America/Sao_Paulo", "2018-02-18", "begins the hour after 23:00 came twice"},
	{"Europe/Paris", "2026-03-29", "has 23 hours"},
	{"Europe/Paris", "2026-10-25", "has 25 hours"},
	{"Asia/Kathmandu", "1986-01-01", "begins at 00:15: the offset grows by a quarter of an hour"},
	{"Asia/Kathmandu", "2026-02-28", "ends a month"},
	{"America/St_Johns", "2010-11-07", "begins, goes on as the day before at 00:01, and begins again"},
	{"America/St_Johns", "2011-03-13", "goes from 00:01 to 01:01"},
	{"Pacific/Apia", "2011-12-30", "is left out"},
	{"Africa/Cairo", "2026-10-30", "begins the hour after 23:00 came twice"},
	{"America/Havana", "2026-11-01", "has the hour from midnight twice"},
	{"UTC", "2024-02-29", "is a leap day"},
	{"UTC", "2027-01-01", "begins a year"},
}

// drawCalendar draws a window of the calendar, and an instant near an odd day.
func drawCalendar(t *rapid.T, events int64) (limit algorithms.Limit, near int64) {
	odd := rapid.SampledFrom(oddDays).Draw(t, "day")
	location, err := time.LoadLocation(odd.place)
	if err != nil {
		t.Fatal(err)
	}
	day, err := time.ParseInLocation(time.DateOnly, odd.day, location)
	if err != nil {
		t.Fatal(err)
	}
	c := rapid.SampledFrom([]algorithms.Calendar{algorithms.Day, algorithms.Week, algorithms.Month}).Draw(t, "calendar")
	near = day.UnixMicro() + rapid.Int64Range(-4*86400e6, 3*86400e6).Draw(t, "from the day")
	return algorithms.Limit{Events: events, Calendar: c, Location: location}, near
}
