package vectors

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// words formats a decision.
func words(d algorithms.Decision) string {
	allowed := "no"
	if d.Allowed {
		allowed = "yes"
	}
	return strings.Join([]string{
		allowed, strconv.FormatInt(d.Remaining, 10),
		short(d.RetryAfter), short(d.NextAfter), short(d.ResetAfter), short(d.Delay),
	}, " ")
}

// answer formats what a step was answered.
func (s *Step) answer(d algorithms.Decision) string {
	if s.Do == Ahead {
		return strconv.FormatInt(d.Units, 10) + " " + short(d.Lasts)
	}
	return words(d)
}

// Line formats a step as a line of a file, with its time counted from an instant in
// microseconds.
func (s *Step) Line(from int64) string {
	at, cost := short(time.Duration(s.At-from)*time.Microsecond), strconv.FormatInt(s.Cost, 10)
	switch s.Do {
	case Renew:
		return at + " renew " + cost + " " + s.Name
	case Adjust:
		return at + " adjust " + cost + " " + s.Name
	}
	if s.Name != "" {
		cost += " " + s.Name
	}
	if s.Do == Ahead {
		at += " ahead"
	}
	return at + " " + cost + arrow + s.answer(s.Want)
}

// Options formats a limit as a line of a file.
func Options(l algorithms.Limit) string {
	options := []string{"limit"}
	add := func(name, value string, set bool) {
		if set {
			options = append(options, name+"="+value)
		}
	}
	add("events", strconv.FormatInt(l.Events, 10), true)
	add("burst", strconv.FormatInt(l.Burst, 10), l.Burst != 0)
	add("window", short(l.Window), l.Window != 0)
	add("window", l.Calendar.String(), l.Calendar != 0)
	add("timezone", l.Location.String(), l.Location != nil)
	add("refill", l.Refill, l.Refill != "")
	add("mode", l.Mode, l.Mode != "")
	add("max_wait", short(l.MaxWait), l.MaxWait != 0)
	add("align", l.Align, l.Align != "")
	add("lease", short(l.Lease), l.Lease != 0)
	add("lend", short(l.Hold), l.Hold != 0)
	return strings.Join(options, " ")
}

// short formats a duration: 0, never, or its units without those at the end that are 0.
func short(d time.Duration) string {
	switch d {
	case 0:
		return "0"
	case algorithms.Never:
		return "never"
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

// duration parses the format of short.
func duration(text string) (time.Duration, error) {
	switch text {
	case "0":
		return 0, nil
	case "never":
		return algorithms.Never, nil
	}
	return time.ParseDuration(text)
}

// setLimit parses the options of a limit.
func (p *parser) setLimit(text string) error {
	p.limit = algorithms.Limit{}
	for _, word := range strings.Fields(text) {
		option, value, _ := strings.Cut(word, "=")
		if err := setOption(&p.limit, option, value); err != nil {
			return fmt.Errorf("%s: %w", option, err)
		}
	}
	a, err := algorithms.Get(p.file.Algorithm)
	if err == nil {
		_, err = a.Prepare(p.limit)
	}
	return err
}

func setOption(l *algorithms.Limit, option, value string) (err error) {
	switch option {
	case "events":
		l.Events, err = strconv.ParseInt(value, 10, 64)
	case "burst":
		l.Burst, err = strconv.ParseInt(value, 10, 64)
	case "window":
		for _, c := range []algorithms.Calendar{algorithms.Day, algorithms.Week, algorithms.Month, algorithms.Year} {
			if value == c.String() {
				l.Calendar = c
				return nil
			}
		}
		l.Window, err = duration(value)
	case "timezone":
		l.Location, err = time.LoadLocation(value)
	case "max_wait":
		l.MaxWait, err = duration(value)
	case "lease":
		l.Lease, err = duration(value)
	case "lend":
		l.Hold, err = duration(value)
	case "refill":
		l.Refill = value
	case "mode":
		l.Mode = value
	case "align":
		l.Align = value
	}
	return err // what is unknown is not written again
}
