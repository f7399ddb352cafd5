package limits_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestCalendarWindows: days, weeks, months and years begin at midnight of a time zone, and the wait that
// clients are told ends there.
func TestCalendarWindows(t *testing.T) {
	t.Parallel()
	const requests, limit, second = 12, 5, time.Second
	place := farFromMidnight(t)
	config := func(store string) string {
		text := ""
		for _, window := range []string{"day", "week", "month", "year"} {
			text += harness.Limited(window, "rate 5/"+window+"\ntimezone "+place.String(), store, "respond ok")
		}
		return harness.Caddyfile("", text)
	}
	harness.EachFleet(t, config, func(t *testing.T, f harness.Fleet) {
		client := harness.NewClient(t, "")
		now := time.Now().In(place)
		year, month, day := now.Date()
		toMonday := 7 - (int(now.Weekday())+6)%7
		for window, end := range map[string]time.Time{
			"day":   time.Date(year, month, day+1, 0, 0, 0, 0, place),
			"week":  time.Date(year, month, day+toMonday, 0, 0, 0, 0, place),
			"month": time.Date(year, month+1, 1, 0, 0, 0, 0, place),
			"year":  time.Date(year+1, time.January, 1, 0, 0, 0, 0, place),
		} {
			passed, wait := 0, time.Duration(0)
			for i := range requests {
				before := time.Until(end)
				a := []*harness.Server{f.First, f.Last}[i%2].Get(client, "/"+window)
				if a.Status == http.StatusOK {
					passed++
					continue
				}
				wait = harness.RetryAfter(t, a)
				// Seconds are rounded up, and the clocks of Redis and of this process differ by a little.
				if after := time.Until(end); a.Status != http.StatusTooManyRequests || wait < after-second/100 || wait > before+second+second/100 {
					t.Errorf("%s: status %d, Retry-After %v, want 429 and %v to %v", window, a.Status, wait, after, before)
				}
			}
			t.Logf("%s: it is %v, the wait %v", window, now.Format(time.RFC1123), wait)
			if passed != limit {
				t.Errorf("%s: %d of %d passed, want %d", window, passed, requests, limit)
			}
		}
	})
}

// farFromMidnight picks a time zone where no day is about to end, and where clocks do not change
// at midnight.
func farFromMidnight(t *testing.T) *time.Location {
	t.Helper()
	for _, name := range []string{"Pacific/Auckland", "Asia/Kathmandu", "America/New_York"} {
		place, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		if hour := time.Now().In(place).Hour(); hour > 0 && hour < 23 {
			return place
		}
	}
	t.Fatal("it is midnight everywhere")
	return nil
}
