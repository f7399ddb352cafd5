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
func (w *Window) Parse(args []string) error {
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
	w.Duration = caddy.Duration(d)
	return err
}

// Expects implements [option.Value].
func (w *Window) Expects(span string) string {
	return "a duration" + span + ", or day, week, month or year"
}

// Amount implements [option.Ranged].
func (w *Window) Amount() (int64, bool) { return int64(w.Duration), w.Calendar == 0 }

// MarshalJSON implements [json.Marshaler].
func (w Window) MarshalJSON() ([]byte, error) { return option.Marshal(&w, w.Format()) }

// UnmarshalJSON implements [json.Unmarshaler].
func (w *Window) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &w.Duration) == nil { // also nanoseconds
		return nil
	}
	return option.Text(text, w)
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
