// Package duration formats durations the way people write them.
package duration

import (
	"fmt"
	"strings"
	"time"
)

// Short formats a duration with a precision that people can use.
func Short(d time.Duration) string {
	switch size := max(d, -d); {
	case size >= time.Minute:
		d = d.Round(time.Second)
	case size >= time.Second:
		d = d.Round(time.Second / 10)
	case size >= time.Millisecond:
		d = d.Round(time.Millisecond / 10)
	}
	return Format(d)
}

// Seconds formats seconds as [Short] does.
func Seconds(s float64) string { return Short(time.Duration(s * float64(time.Second))) }

// Format formats a duration the way people write it: 3660d and 1m, not 87840h0m0s and 1m0s.
func Format(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// layouts are the forms in which people write a time.
var layouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly}

// ParseTime reads a time that is in a location if it does not say so itself.
func ParseTime(text string, in *time.Location) (at time.Time, err error) {
	for _, layout := range layouts {
		if at, err = time.ParseInLocation(layout, text, in); err == nil {
			return at, nil
		}
	}
	return at, err
}
