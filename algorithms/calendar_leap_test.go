package algorithms

import (
	"testing"
	"time"
)

// TestLastDayOfALeapYear: for years that package time knows only by a rule, its ZoneBounds
// end a day early in leap years.
func TestLastDayOfALeapYear(t *testing.T) {
	for _, place := range []string{"America/New_York", "Europe/Berlin", "Australia/Sydney", "Asia/Tokyo", "Pacific/Auckland"} {
		location, err := time.LoadLocation(place)
		if err != nil {
			t.Fatal(err)
		}
		for _, year := range []int{2028, 2056, 2104} {
			got := midnight(year, 13, 1, location)
			if want := time.Date(year+1, 1, 1, 0, 0, 0, 0, location); !got.Equal(want) {
				t.Errorf("%s: got %v, want %v", place, got, want)
			}
			last := midnight(year, 12, 31, location)
			if want := time.Date(year, 12, 31, 0, 0, 0, 0, location); !last.Equal(want) {
				t.Errorf("%s: got %v, want %v", place, last, want)
			}
		}
	}
}

// TestCalendarWindowsFarBehind: a store whose clock is far behind that of the instance, or far ahead, limits all the same. Its
// windows are about as long as those of the calendar.
func TestCalendarWindowsFarBehind(t *testing.T) {
	today := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	for calendar, length := range map[Calendar]time.Duration{Day: 24 * time.Hour, Week: 7 * 24 * time.Hour, Month: 31 * 24 * time.Hour, Year: 366 * 24 * time.Hour} {
		for _, off := range []time.Duration{-24 * time.Hour, -3 * 24 * time.Hour, -100 * 24 * time.Hour, -4000 * 24 * time.Hour, 4000 * 24 * time.Hour} {
			p, _, _ := FixedWindow{}.PrepareAt(Limit{Events: 3, Calendar: calendar}, today)
			now := today.Add(off).UnixMicro()
			var s State
			var d Decision
			admitted := 0
			for range 9 {
				if s, d = (FixedWindow{}).Take(s, p, now, 1); d.Allowed {
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
