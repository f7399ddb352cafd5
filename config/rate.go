package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// ParseRate parses rates such as 10/1s, 100/m, 10r/s and 1000/day.
func ParseRate(s string) (events int64, window Window, err error) {
	count, per, ok := strings.Cut(s, "/")
	if !ok {
		return 0, window, errors.New("write events/window, such as 10/1s, 100/m or 1000/day")
	}
	digits := strings.TrimSuffix(count, "r") // as in nginx
	if events, err = strconv.ParseInt(digits, 10, 64); err != nil {
		return 0, window, fmt.Errorf("events '%s' must be a whole number", count)
	}
	window, err = parsePer(per)
	return events, window, err
}

// parsePer reads the window of a rate. The words for calendar windows are those of the option window.
func parsePer(text string) (w Window, err error) {
	if unit, ok := units[text]; ok {
		return Window{Duration: caddy.Duration(unit)}, nil
	}
	if err = w.Parse([]string{text}, nil); err != nil || w == (Window{}) {
		err = fmt.Errorf("window '%s' must be a duration such as 1s or 5m, or one of s, sec, second, m, min, minute, h, hour, d, day, week, month, year", text)
	}
	return w, err
}

// units are the units of time that a rate can be for. Caddy's days have 24 hours.
var units = map[string]time.Duration{
	"s": time.Second, "sec": time.Second, "second": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour,
	"d": 24 * time.Hour,
}
