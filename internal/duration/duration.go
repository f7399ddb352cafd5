// Package duration checks durations in configs, and formats them the way people write them.
package duration

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// Parse parses a duration of a config, such as 90s or 1d. The error about a number without a unit
// says what was probably meant.
func Parse(text string) (time.Duration, error) {
	d, err := caddy.ParseDuration(text)
	if err == nil {
		return d, nil
	}
	if _, notNumber := strconv.ParseUint(text, 10, 32); notNumber == nil {
		return 0, fmt.Errorf("it has no unit; did you mean %ss?", text)
	}
	return 0, err
}

// CheckMin returns an error if the duration of the named option is shorter than shortest.
func CheckMin(name string, d caddy.Duration, shortest time.Duration) error {
	got := time.Duration(d)
	if got >= shortest {
		return nil
	}
	hint := ""
	if got > 0 && got < time.Millisecond {
		seconds := got.Nanoseconds()
		if seconds > 24*3600 {
			seconds = 60
		}
		hint = fmt.Sprintf(`; a number in JSON is nanoseconds: write "%ds" for %[1]d seconds`, seconds)
	}
	return fmt.Errorf("%s must be at least %v, got %v%s", name, shortest, got, hint)
}

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
