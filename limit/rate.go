package limit

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/internal/option"
)

// rate parses the rate that may be given in place of events and window, as in `rate 10/1s` and
// `token_bucket 10/1s`.
type rate struct {
	d     *caddyfile.Dispenser
	limit *Limit
	set   string // what has set events and window, for errors
}

func (r *rate) parseAlgorithm() (string, error) {
	args := r.d.RemainingArgs()
	if len(args) == 0 || len(args) > 2 {
		return "", r.d.ArgErr()
	}
	r.limit.Algorithm = args[0]
	if len(args) == 2 && CountsSlots(args[0]) {
		return args[0], r.parseSlots(args[0], args[1])
	}
	if len(args) == 2 {
		return args[0], r.parse(args[1])
	}
	return args[0], nil
}

// parseRate parses the option rate.
func (r *rate) parseRate() (string, error) {
	var text string
	if !r.d.AllArgs(&text) {
		return "", r.d.ArgErr()
	}
	return text, r.parse(text)
}

// parse sets events and window from a rate.
func (r *rate) parse(text string) error {
	events, window, err := ParseRate(text)
	if err != nil {
		return r.d.Errf("invalid rate '%s': %v", text, err)
	}
	if err := r.replaces("rate '" + text + "' sets events and window: write either the rate or events and window"); err != nil {
		return err
	}
	r.limit.MaxEvents, r.limit.Window = &Amount{Number: events}, window
	return nil
}

// parseSlots sets the events of a limit without a window.
func (r *rate) parseSlots(algorithm, text string) error {
	events, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return r.d.Errf("algorithm %s counts running requests, and has no window: write a number, such as algorithm %s 5, got '%s'", algorithm, algorithm, text)
	}
	if err := r.replaces("algorithm " + algorithm + " " + text + " sets events: write either the number there or events"); err != nil {
		return err
	}
	r.limit.MaxEvents = &Amount{Number: events}
	return nil
}

// replaces notes that events and window are set, if they are not set already.
func (r *rate) replaces(what string) error {
	if r.set != "" {
		return r.d.Err(r.set)
	}
	if r.set = what; r.limit.isSet() {
		return r.d.Err(what)
	}
	return nil
}

// or returns a parser of an option that excludes a rate.
func (r *rate) or(parse option.Parser) option.Parser {
	return func() (string, error) {
		if r.set != "" {
			return "", r.d.Err(r.set)
		}
		return parse()
	}
}

// isRate reports whether a text is a rate.
func isRate(text string) bool {
	_, _, err := ParseRate(text)
	return err == nil
}

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
	if w, err = parseWindow(text); err == nil && w != (Window{}) {
		return w, nil
	}
	if _, notNumber := strconv.Atoi(text); notNumber == nil && err != nil {
		return w, fmt.Errorf("window '%s': %w", text, err)
	}
	return w, fmt.Errorf("window '%s' must be a duration such as 1s or 5m, or one of %s", text, strings.Join(perWords, ", "))
}

// units are the units of time that a rate can be for. Caddy's days have 24 hours.
var units = map[string]time.Duration{
	"s": time.Second, "sec": time.Second, "second": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour,
	"d": 24 * time.Hour,
}

// perWords are all words that a rate can have as its window, the shortest first.
var perWords = slices.Concat([]string{"s", "sec", "second", "m", "min", "minute", "h", "hour", "d"}, calendarNames)
