package caddyratelimit

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// Window is how long a window is: a duration, or `day`, `week` or `month`.
type Window struct {
	Duration caddy.Duration
	Calendar algorithms.Calendar
}

// calendarWords are the windows of the calendar.
var calendarWords = map[string]algorithms.Calendar{
	"day": algorithms.Day, "week": algorithms.Week, "month": algorithms.Month,
}

// window takes a window as its argument.
func window(d *caddyfile.Dispenser, to *Window) parser {
	read := duration(d, "window duration", &to.Duration)
	return func() (string, error) {
		if args := d.RemainingArgs(); len(args) == 1 && calendarWords[args[0]] != 0 {
			to.Calendar = calendarWords[args[0]]
			return args[0], nil
		} else {
			for range args {
				d.Prev()
			}
		}
		return read()
	}
}

// MarshalJSON implements [json.Marshaler].
func (w Window) MarshalJSON() ([]byte, error) {
	if w.Calendar != 0 {
		return json.Marshal(w.Calendar.String())
	}
	return json.Marshal(w.Duration)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (w *Window) UnmarshalJSON(b []byte) error {
	var word string
	if json.Unmarshal(b, &word) == nil {
		if c, ok := calendarWords[word]; ok {
			*w = Window{Calendar: c}
			return nil
		}
	}
	w.Calendar = 0
	if err := json.Unmarshal(b, &w.Duration); err != nil {
		return fmt.Errorf("window must be a duration such as \"10s\", or day, week or month: %w", err)
	}
	return nil
}

// validate judges what has to do with no algorithm in particular.
func (w Window) validate() error {
	switch {
	case w.Calendar != 0:
		return nil
	case w.Duration == 0:
		return errors.New("window is missing: a zone needs max_events and a window")
	case w.Duration < 0:
		return fmt.Errorf("window must be greater than zero, got %v", time.Duration(w.Duration))
	}
	return atLeast("window", w.Duration, algorithms.MinWindow)
}

// spell writes the window as people do.
func (w Window) spell() string {
	if w.Calendar != 0 {
		return w.Calendar.String()
	}
	return spell(time.Duration(w.Duration))
}

// length is about how long the window is.
func (w Window) length() time.Duration {
	const day = 24 * time.Hour
	switch w.Calendar {
	case algorithms.Day:
		return day
	case algorithms.Week:
		return 7 * day
	case algorithms.Month:
		return 31 * day
	}
	return time.Duration(w.Duration)
}
