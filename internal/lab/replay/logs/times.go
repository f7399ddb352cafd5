package logs

import (
	"strconv"
	"strings"
	"time"
)

// parseTime reads a moment in any of the forms that logs have: a number of seconds, milliseconds,
// microseconds or nanoseconds since 1970, RFC 3339 and its relatives with a blank instead of the T or
// slashes instead of the hyphens, and 20/Nov/2026:14:03:07 +0100. A time without a zone is in UTC. What
// is none of them is an error.
func parseTime(v string) (time.Time, error) {
	v = strings.TrimSuffix(strings.TrimPrefix(v, "["), "]")
	layout, clock := "2006-01-02T15:04:05", 11
	switch {
	case len(v) >= 20 && v[2] == '/' && v[6] == '/':
		layout, clock = "02/Jan/2006:15:04:05", 12
	case len(v) >= 19 && (v[4] == '-' && v[7] == '-' || v[4] == '/' && v[7] == '/'):
		v = strings.ReplaceAll(v[:10], "/", "-") + "T" + v[11:]
	default:
		return parseUnixTime(v)
	}
	zone := zones.Replace(v[clock+8:])
	v = v[:clock+8] + zone
	t, err := time.Parse(layout+"Z0700", v)
	if err != nil {
		t, err = time.Parse(layout, v)
	}
	if err != nil || t.Year() < 1970 || t.Year() > 2261 {
		return time.Time{}, errNoTime
	}
	return t, nil
}

// zones makes one form of those in which zones are written.
var zones = strings.NewReplacer(" ", "", ":", "", "UTC", "Z", "GMT", "Z")

// parseUnixTime reads a number whose unit is known by its size: as seconds it would be far away.
func parseUnixTime(v string) (time.Time, error) {
	whole, _, _ := strings.Cut(v, ".")
	unit := "ns"
	switch n := len(whole); {
	case n <= 10:
		unit = "s"
	case n <= 13:
		unit = "ms"
	case n <= 16:
		unit = "us"
	}
	if since, err := time.ParseDuration(v + unit); err == nil && since >= 0 {
		return time.Unix(0, int64(since)), nil
	}
	return time.Time{}, errNoTime
}

// parseDuration reads a number of units, or a duration as Go writes it. What is negative is 0.
func parseDuration(v, unit string) (time.Duration, error) {
	if f, err := strconv.ParseFloat(v, 64); err == nil {
		v = strconv.FormatFloat(f, 'f', -1, 64) + unit
	}
	d, err := time.ParseDuration(v)
	return max(0, d), err
}
