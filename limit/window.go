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

// Window is a length of time, or a placeholder whose value is one. In JSON it is a
// duration such as `"1m"`, a calendar window `"day"`, `"week"`, `"month"` or `"year"`, a placeholder
// such as `"{http.vars.window}"`, or a placeholder with a fallback such as
// `"{http.vars.window} 1m"`. The fallback applies when the placeholder is empty; without a
// fallback, such requests are refused.
type Window struct {
	// The duration, or the fallback of the placeholder.
	Duration caddy.Duration

	// The calendar window, in place of the duration. Default: none.
	Calendar algorithms.Calendar

	// The placeholder, without braces. Default: none.
	From string
}

// calendarWords are the calendar windows.
var calendarWords = map[string]algorithms.Calendar{
	"day": algorithms.Day, "week": algorithms.Week, "month": algorithms.Month, "year": algorithms.Year,
}

// calendarNames are the names of the calendar windows.
var calendarNames = []string{"day", "week", "month", "year"}

// ParseWindow returns a parser of a window, or of a placeholder with an optional fallback.
func ParseWindow(d *caddyfile.Dispenser, to *Window) option.Parser {
	read := option.Duration(d, "window duration", &to.Duration)
	return func() (string, error) {
		placeholder, fallback := parsePlaceholder(d)
		to.From = placeholder
		if placeholder != "" && !fallback {
			return to.Format(), nil
		}
		if args := d.RemainingArgs(); len(args) == 1 && calendarWords[args[0]] != 0 {
			to.Calendar = calendarWords[args[0]]
			return to.Format(), nil
		} else {
			for range args {
				d.Prev()
			}
		}
		shown, err := read()
		if placeholder != "" {
			shown = to.Format()
		}
		return shown, err
	}
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

// Resolve returns the window for a request.
func (w Window) Resolve(repl *caddy.Replacer) (Window, error) {
	if w.From == "" {
		return w, nil
	}
	fallback := Window{Duration: w.Duration, Calendar: w.Calendar}
	text, err := placeholder.Value(repl, w.From, fallback != Window{})
	if err != nil || text == "" {
		return fallback, err
	}
	if fallback, err = parseWindow(text); err != nil {
		return Window{}, fmt.Errorf("{%s} is not a window", w.From)
	}
	return fallback, nil
}

// MarshalJSON implements [json.Marshaler].
func (w Window) MarshalJSON() ([]byte, error) {
	if w.Calendar != 0 || w.From != "" {
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
		if name, rest, ok := placeholder.Cut(word); ok {
			return w.vary(name, rest)
		}
	}
	*w = Window{}
	err := json.Unmarshal(b, &w.Duration)
	if _, unclear := option.ParseDuration(word); err != nil && unclear != nil && word != "" {
		err = unclear
	}
	if err != nil {
		return fmt.Errorf("window must be a duration such as \"10s\", or day, week, month or year: %w", err)
	}
	return nil
}

// vary sets a placeholder and its fallback.
func (w *Window) vary(placeholder, fallback string) (err error) {
	*w = Window{}
	if fallback != "" {
		if *w, err = parseWindow(fallback); err != nil {
			return fmt.Errorf("window {%s} must fall back to a duration such as \"10s\", or day, week, month or year: %w", placeholder, err)
		}
	}
	w.From = placeholder
	return nil
}

// validate reports what is wrong whatever the algorithm is.
func (w Window) validate() error {
	switch {
	case w.Calendar != 0, w.From != "" && w.Duration == 0:
		return placeholder.CheckOption("window", w.From)
	case w.Duration == 0:
		return errors.New("window is missing: a zone needs max_events and a window")
	case w.Duration < 0:
		return fmt.Errorf("window must be greater than zero, got %s", duration.Format(time.Duration(w.Duration)))
	}
	if err := placeholder.CheckOption("window", w.From); err != nil {
		return err
	}
	return duration.CheckMin("window", time.Duration(w.Duration), algorithms.MinWindow)
}

// Format returns the window as a Caddyfile has it.
func (w Window) Format() string {
	if w.From != "" {
		fallback := w
		if fallback.From = ""; fallback == (Window{}) {
			return "{" + w.From + "}"
		}
		return "{" + w.From + "} " + fallback.Format()
	}
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
