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
