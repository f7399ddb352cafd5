package algorithms_test

import (
	"archive/zip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
)

// places are time zones in both hemispheres whose clocks change in every way there is: at
// midnight, over midnight, by odd steps, or never.
var places = []string{
	"UTC", "Europe/Paris", "Europe/London", "Europe/Moscow", "America/New_York", "America/Los_Angeles",
	"America/Sao_Paulo", "America/Havana", "America/St_Johns", "America/Caracas", "America/Asuncion",
	"Africa/Cairo", "Africa/Casablanca", "Asia/Tehran", "Asia/Kathmandu", "Asia/Kolkata", "Asia/Pyongyang",
	"Asia/Gaza", "Asia/Amman", "Australia/Lord_Howe", "Australia/Sydney", "Pacific/Apia", "Pacific/Kiritimati",
	"Pacific/Chatham", "Antarctica/Troll",
}

// TestCalendar looks at the windows around each change of the clocks, from 1970 to 2056, of some time zones, in "make deep"
// of all that come with Go. It checks that every instant of a window has a date in the same day, week, month or year, and
// that the instant before the window does not.
func TestCalendar(t *testing.T) {
	names := places
	if deep.Run() {
		names = allPlaces(t)
	}
	changes := 0
	for _, name := range names {
		location, err := time.LoadLocation(name)
		must(t, err)
		for at := time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC).In(location); at.Year() < 2057; changes++ {
			_, change := at.ZoneBounds()
			if change.IsZero() {
				change = at.AddDate(1, 0, 0) // clocks that never change
			} else if !change.After(at) {
				change = at.AddDate(0, 0, 1) // package time ends leap years a day early that it knows only by a rule
			}
			for _, off := range []time.Duration{-25 * time.Hour, -time.Hour, -time.Microsecond, 0, time.Hour, 25 * time.Hour} {
				for _, c := range []algorithms.Calendar{algorithms.Day, algorithms.Week, algorithms.Month, algorithms.Year} {
					around(t, c, location, change.Add(off))
				}
			}
			at = change
		}
	}
	if t.Logf("%d changes in %d time zones", changes, len(names)); len(names) < 10 || changes < 100 {
		t.Error("they are too few")
	}
}

// TestCalendarWindowsFarBehind: a store whose clock is far behind that of the instance, or far ahead, limits all the same. Its
// windows are about as long as those of the calendar.
func TestCalendarWindowsFarBehind(t *testing.T) {
	today := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	for calendar, length := range map[algorithms.Calendar]time.Duration{algorithms.Day: 24 * time.Hour, algorithms.Week: 7 * 24 * time.Hour, algorithms.Month: 31 * 24 * time.Hour, algorithms.Year: 366 * 24 * time.Hour} {
		for _, off := range []time.Duration{-24 * time.Hour, -3 * 24 * time.Hour, -100 * 24 * time.Hour, -4000 * 24 * time.Hour, 4000 * 24 * time.Hour} {
			p, _, _ := algorithms.FixedWindow{}.PrepareAt(algorithms.Limit{Events: 3, Calendar: calendar}, today)
			now := today.Add(off).UnixMicro()
			var s algorithms.State
			var d algorithms.Decision
			admitted := 0
			for range 9 {
				if s, d = (algorithms.FixedWindow{}).Take(s, p, now, 1); d.Allowed {
					admitted++
				}
				now++
			}
			if admitted > 4 || d.RetryAfter > length {
				t.Errorf("%v, %v off: %d of 3 admitted, then a wait of %v", calendar, off, admitted, d.RetryAfter)
			}
		}
	}
}

// allPlaces are the time zones that come with Go.
func allPlaces(t *testing.T) (names []string) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	must(t, err)
	zones, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	must(t, err)
	defer zones.Close()
	for _, file := range zones.File {
		if !strings.HasSuffix(file.Name, "/") {
			names = append(names, file.Name)
		}
	}
	return names
}

// around checks the window that contains at, and its neighbors.
func around(t *testing.T, c algorithms.Calendar, location *time.Location, at time.Time) {
	t.Helper()
	bounds := c.Bounds(at, location, 2)[1:]
	start, end := bounds[0].In(location), bounds[1].In(location)
	if len(bounds) != 3 || at.Before(start) || !at.Before(end) || !end.Before(bounds[2]) {
		t.Fatalf("%v around %v: %v", c, at.In(location), bounds)
	}
	// Its first instant shows a new date, and also the first instant after it.
	for _, bound := range []time.Time{start, end} {
		if ordinal(c, bound) <= ordinal(c, bound.Add(-time.Microsecond)) {
			t.Fatalf("%v around %v: %v begins nothing", c, at.In(location), bound)
		}
	}
	// No instant within the window shows a later date. Clocks may show the previous date again.
	if shown := ordinal(c, at.In(location)); shown > ordinal(c, start) || shown < ordinal(c, start)-1 {
		t.Fatalf("%v around %v: begins at %v", c, at.In(location), start)
	}
	if ordinal(c, end.Add(-time.Microsecond)) != ordinal(c, start) {
		t.Fatalf("%v around %v: ends at %v", c, at.In(location), end)
	}
	// The first and the last instant of the window lead to the same window.
	for _, from := range []time.Time{start, end.Add(-time.Microsecond)} {
		if again := c.Bounds(from, location, 1)[1:]; !again[0].Equal(start) || !again[1].Equal(end) {
			t.Fatalf("%v around %v: %v, but from %v: %v", c, at.In(location), bounds, from, again)
		}
	}
	// Unless clocks change nearby, time.Date agrees.
	if _, offset := start.Zone(); offsetOf(start.Add(-26*time.Hour)) == offset && offsetOf(end.Add(26*time.Hour)) == offset {
		year, month, day := at.In(location).Date()
		switch c {
		case algorithms.Week:
			day -= (int(at.In(location).Weekday()) + 6) % 7
		case algorithms.Month:
			day = 1
		case algorithms.Year:
			month, day = time.January, 1
		}
		if want := time.Date(year, month, day, 0, 0, 0, 0, location); !start.Equal(want) {
			t.Fatalf("%v around %v: begins at %v, want %v", c, at.In(location), start, want)
		}
	}
}

// ordinal counts days, weeks, months or years by the date that clocks show.
func ordinal(c algorithms.Calendar, t time.Time) int {
	year, month, day := t.Date()
	monday := time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
	days := int(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Sub(monday) / (24 * time.Hour))
	switch c {
	case algorithms.Day:
		return days
	case algorithms.Week:
		return days / 7
	case algorithms.Year:
		return year
	}
	return year*12 + int(month)
}

func offsetOf(t time.Time) int {
	_, seconds := t.Zone()
	return seconds
}
