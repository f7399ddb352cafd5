package config

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// Window is a length of time. In JSON it is a duration such as `"1m"`, or a calendar window `"day"`, `"week"`, `"month"` or
// `"year"`.
type Window struct {
	// The duration.
	Duration caddy.Duration

	// The calendar window, instead of the duration. Default: none.
	Calendar algorithms.Calendar
}

// Durations are the options that can be a time, whose numbers in JSON are nanoseconds.
var Durations = slices.Concat(option.Times(Zone{}), option.Times(Ban{}))

// calendarWords are the calendar windows.
var calendarWords = map[string]algorithms.Calendar{
	"day": algorithms.Day, "week": algorithms.Week, "month": algorithms.Month, "year": algorithms.Year,
}

// Parse implements [option.Value].
func (w *Window) Parse(args []string, of *option.Field) error {
	if _, _, ok := placeholder.Cut(strings.Join(args, " ")); ok {
		return errors.New("it cannot be a placeholder: write a plan for each other window")
	}
	if len(args) != 1 {
		return option.ErrWrong
	}
	*w = Window{Calendar: calendarWords[args[0]]}
	if w.Calendar != 0 {
		return nil
	}
	d, err := option.ParseDuration(args[0])
	if w.Duration = caddy.Duration(d); err != nil {
		return err
	}
	return of.Within(float64(d))
}

// MarshalJSON implements [json.Marshaler].
func (w Window) MarshalJSON() ([]byte, error) {
	if w.Calendar != 0 {
		return json.Marshal(w.Format())
	}
	return json.Marshal(w.Duration)
}

// Format returns the window as a Caddyfile has it.
func (w Window) Format() string {
	if w.Calendar != 0 {
		return w.Calendar.String()
	}
	return duration.Format(time.Duration(w.Duration))
}

// days are about how many days calendar windows have.
var days = map[algorithms.Calendar]time.Duration{algorithms.Day: 1, algorithms.Week: 7, algorithms.Month: 31, algorithms.Year: 366}

// Length returns the length of the window; for a calendar window, about its length.
func (w Window) Length() time.Duration {
	if w.Calendar != 0 {
		return days[w.Calendar] * 24 * time.Hour
	}
	return time.Duration(w.Duration)
}
