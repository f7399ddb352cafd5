package limit

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/internal/option"
)

// rate parses the rate that may follow the name of an algorithm in place of events and
// window, as in `token_bucket 10/1s`.
type rate struct {
	d     *caddyfile.Dispenser
	limit *Limit
	text  string
}

func (r *rate) parseAlgorithm() (string, error) {
	args := r.d.RemainingArgs()
	if len(args) == 0 || len(args) > 2 {
		return "", r.d.ArgErr()
	}
	r.limit.Algorithm = args[0]
	if len(args) == 2 {
		return args[0], r.parse(args[1])
	}
	return args[0], nil
}

// parse sets events and window from a rate.
func (r *rate) parse(text string) error {
	events, window, err := parseRate(text)
	if err != nil {
		return r.d.Errf("invalid rate '%s': %v", text, err)
	}
	if r.text = text; r.limit.isSet() {
		return r.twice()
	}
	r.limit.MaxEvents = &Amount{Number: events}
	r.limit.Window.Duration = caddy.Duration(window)
	return nil
}

// or returns a parser of an option that excludes a rate.
func (r *rate) or(parse option.Parser) option.Parser {
	return func() (string, error) {
		if r.text != "" {
			return "", r.twice()
		}
		return parse()
	}
}

func (r *rate) twice() error {
	return r.d.Errf("rate '%s' sets events and window: write either the rate or events and window", r.text)
}

// parseRate parses rates such as 10/1s, 100/m and 1000/day.
func parseRate(s string) (events int64, window time.Duration, err error) {
	count, per, ok := strings.Cut(s, "/")
	if !ok {
		return 0, 0, fmt.Errorf("write events/window, such as 10/1s, 100/m or 1000/day")
	}
	if events, err = strconv.ParseInt(count, 10, 64); err != nil {
		return 0, 0, fmt.Errorf("events '%s' must be a whole number", count)
	}
	if word, ok := windowWords[per]; ok {
		return events, word, nil
	}
	if window, err = caddy.ParseDuration(per); err != nil {
		return 0, 0, fmt.Errorf("window '%s' must be a duration such as 1s or 5m, or one of s, m, h, d, second, minute, hour, day", per)
	}
	return events, window, nil
}

var windowWords = map[string]time.Duration{
	"s": time.Second, "second": time.Second,
	"m": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour,
}
