package limit

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

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

// calendarWords are the calendar windows.
var calendarWords = map[string]algorithms.Calendar{
	"day": algorithms.Day, "week": algorithms.Week, "month": algorithms.Month, "year": algorithms.Year,
}

// calendarNames are the names of the calendar windows.
var calendarNames = []string{"day", "week", "month", "year"}

// ParseWindow returns a parser of a window.
func ParseWindow(d *caddyfile.Dispenser, to *Window) option.Parser {
	read := option.Duration(d, "window duration", &to.Duration)
	return func() (string, error) {
		if d.NextArg() {
			if err := fixedWindow(d.Val()); err != nil {
				return "", d.WrapErr(err)
			}
			if word := d.Val(); calendarWords[word] != 0 && d.CountRemainingArgs() == 0 {
				to.Calendar = calendarWords[word]
				return word, nil
			}
			d.Prev()
		}
		return read()
	}
}

// fixedWindow returns an error if a window is a placeholder.
func fixedWindow(text string) error {
	return noPlaceholder("window", text, "a duration such as 10s, or day, week, month or year")
}

// noPlaceholder returns an error if the text of an option is a placeholder.
func noPlaceholder(option, text, instead string) error {
	if _, _, ok := placeholder.Cut(text); ok {
		return fmt.Errorf("%s must not be a placeholder, got '%s': write %s, and a plan for each other %s", option, text, instead, option)
	}
	return nil
}

// parseWindow reads a duration or a word.
func parseWindow(text string) (w Window, err error) {
	if w.Calendar = calendarWords[text]; w.Calendar != 0 {
		return w, nil
	}
	d, err := option.ParseDuration(text)
	w.Duration = caddy.Duration(d)
	return w, err
}

// MarshalJSON implements [json.Marshaler].
func (w Window) MarshalJSON() ([]byte, error) {
	if w.Calendar != 0 {
		return json.Marshal(w.Format())
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
		if err := fixedWindow(word); err != nil {
			return err
		}
	}
	*w = Window{}
	err := json.Unmarshal(b, &w.Duration)
	if _, unclear := option.ParseDuration(word); err != nil && unclear != nil && word != "" {
		err = unclear
	}
	const must = `window must be a duration such as "10s", or day, week, month or year`
	switch _, wrongType := errors.AsType[*json.UnmarshalTypeError](err); {
	case wrongType:
		return fmt.Errorf("%s, got %s", must, b)
	case err != nil:
		return fmt.Errorf("%s: %w", must, err)
	}
	return nil
}

// validate reports what is wrong whatever the algorithm is.
func (w Window) validate() error {
	switch {
	case w.Calendar != 0:
		return nil
	case w.Duration == 0:
		return errors.New("window is missing: a zone needs max_events and a window")
	case w.Duration < 0:
		return fmt.Errorf("window must be greater than zero, got %s", duration.Format(time.Duration(w.Duration)))
	}
	return duration.CheckMin("window", time.Duration(w.Duration), algorithms.MinWindow)
}

// Format returns the window as a Caddyfile has it.
func (w Window) Format() string {
	if w.Calendar != 0 {
		return w.Calendar.String()
	}
	return duration.Format(time.Duration(w.Duration))
}

// Length returns the length of the window; for a calendar window, about its length.
func (w Window) Length() time.Duration {
	const day = 24 * time.Hour
	switch w.Calendar {
	case algorithms.Day:
		return day
	case algorithms.Week:
		return 7 * day
	case algorithms.Month:
		return 31 * day
	case algorithms.Year:
		return 366 * day
	}
	return time.Duration(w.Duration)
}
