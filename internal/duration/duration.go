// Package duration checks durations of configs, and writes them as people do.
package duration

import (
	"fmt"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// CheckMin judges a duration.
func CheckMin(name string, d caddy.Duration, least time.Duration) error {
	given := time.Duration(d)
	if given >= least {
		return nil
	}
	hint := ""
	if given > 0 && given < time.Millisecond {
		hint = `; a number in JSON is nanoseconds: write "60s"`
	}
	return fmt.Errorf("%s must be at least %v, got %v%s", name, least, given, hint)
}

// Format writes a duration as people do: 3660d and 1m, not 87840h0m0s and 1m0s.
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
