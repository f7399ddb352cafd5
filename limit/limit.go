// Package limit holds limits as configs have them: their JSON, their Caddyfile syntax, and
// the numbers that they have for a request.
package limit

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
)

// defaultAlgorithm is the algorithm of limits that name none.
const defaultAlgorithm = "sliding_window_log"

// adaptive is the algorithm of zones that became a directive, which removedAdaptive says.
const (
	adaptive        = "adaptive"
	removedAdaptive = "algorithm adaptive was removed: write the directive adaptive_concurrency { ... } next to rate_limit (docs/compatibility.md#removed)"
)

// maxMaxWait is the largest MaxWait.
const maxMaxWait = time.Hour

// Limit is how many requests pass, and how they are counted.
type Limit struct {
	// How many requests a window has room for, from 0 to 1000000000000; with
	// `sliding_window_log` at most 50000000, with `concurrency` at most 1000000. 0 refuses
	// all. May be a placeholder, with or without a fallback, e.g. `"{http.vars.quota} 100"`.
	// Required, except in a zone with plans.
	MaxEvents *Amount `json:"max_events,omitempty"`

	// The length of a window, from 1ms to 3660d; with `fixed_window` also `day`, `week`
	// (from Monday), `month` or `year`. May be a placeholder, with or without a fallback.
	// Required, except with `concurrency` or in a zone with plans.
	Window Window `json:"window,omitzero"`

	// How to count: one of `sliding_window_log`, `sliding_window_counter`, `token_bucket`, `gcra`,
	// `leaky_bucket`, `fixed_window` or `concurrency`. `sliding_window_log` is exact. `sliding_window_counter` is nearly exact
	// and keeps only two counts per key. `token_bucket` (also called `gcra`) gives events
	// back evenly and allows bursts. `leaky_bucket` can make requests wait for their turn.
	// `fixed_window` is the cheapest. `concurrency` limits how many requests run at the same
	// time. Default: `sliding_window_log`, and `fixed_window` if the window is a `day`, `week`,
	// `month` or `year`.
	Algorithm string `json:"algorithm,omitempty"`

	// How many events a bucket holds, for `token_bucket` and `leaky_bucket`, from 1 to
	// 1000000000000. May be a placeholder, with or without a fallback; if its value is 0, nothing is allowed. Default:
	// max_events.
	Burst Amount `json:"burst,omitzero"`

	// How a `token_bucket` is refilled: either `smooth` or `interval`. `smooth` gives events back evenly. `interval` gives
	// all of max_events back at the end of each window, counted from the first request.
	// Default: `smooth`.
	Refill string `json:"refill,omitempty"`

	// What a `leaky_bucket` does: either `meter` or `queue`. `meter` refuses requests that would overflow the bucket.
	// `queue` does so too, and makes the other requests wait so that they leave evenly
	// spaced. Default: `meter`.
	Mode string `json:"mode,omitempty"`

	// When the windows of `fixed_window` start: either `clock` or `first_request`. `clock` starts them at multiples of their
	// length since 1970. `first_request` starts one with the first request after the
	// previous window. Default: `clock`.
	Align string `json:"align,omitempty"`

	// The time zone in which a `day`, `week`, `month` or `year` begins, e.g. `Europe/Paris`. Default: `UTC`.
	Timezone string `json:"timezone,omitempty"`

	// How long a slot of `concurrency` stays taken after its instance has died, from 1s to 1h.
	// A running Caddy renews its slots in time, however long a request takes. Default: 30s.
	Lease caddy.Duration `json:"lease,omitempty"`

	// How long a request may wait instead of being refused, from 0s to 1h. It is held back and
	// tried again when there should be room. In a queue, this is the longest wait for a
	// turn. Default: 0, which means not to wait, and in a queue to wait without a bound.
	MaxWait caddy.Duration `json:"max_wait,omitempty"`
}

// Numbers are the numbers of a limit. The events and the burst can differ from request to request.
type Numbers struct {
	Events, Burst int64
	Window        Window
}

// isSet reports whether events or a window are given.
func (l *Limit) isSet() bool { return l.MaxEvents != nil || l.Window != Window{} }

// Missing says what a zone without plans must still have, in the words of the Caddyfile; "" if nothing
// is missing.
func (l *Limit) Missing() string {
	switch {
	case l.Algorithm == adaptive:
		return removedAdaptive
	case CountsSlots(l.Algorithm) && l.MaxEvents == nil:
		return "a zone for concurrency requires events, the number of slots"
	case CountsSlots(l.Algorithm), l.MaxEvents != nil && l.Window != Window{}:
		return ""
	case l.MaxEvents != nil && l.MaxEvents.From != "":
		return "the window is missing: write window 1m"
	case l.MaxEvents != nil:
		return fmt.Sprintf("the window is missing: write window 1m, or rate %s/1m in place of events", l.MaxEvents)
	case l.Window != Window{}:
		return fmt.Sprintf("the events are missing: write events 100, or rate 100/%s in place of window", l.Window.Format())
	}
	return "a zone requires both events and a window, such as rate 100/1m"
}

// Varies reports whether requests can have different numbers.
func (l *Limit) Varies() bool {
	return l.MaxEvents.From != "" || l.Burst.From != ""
}

// Placeholder is a placeholder in an option of a limit.
type Placeholder struct {
	Option, Name string
	Fallback     bool // the option has a fallback
}

// Placeholders returns the placeholders in the options of the limit.
func (l *Limit) Placeholders() (all []Placeholder) {
	if a := l.MaxEvents; a != nil && a.From != "" {
		all = append(all, Placeholder{"max_events", a.From, a.Fallback})
	}
	if a := l.Burst; a.From != "" {
		all = append(all, Placeholder{"burst", a.From, a.Fallback})
	}
	return all
}

// Check reports what is wrong whatever the algorithm is.
func (l *Limit) Check() error {
	if l.Algorithm == adaptive {
		return errors.New(removedAdaptive)
	}
	if l.MaxEvents == nil {
		return errors.New("max_events is missing: a zone needs max_events and a window")
	}
	if err := l.MaxEvents.Check("max_events"); err != nil {
		return err
	}
	switch {
	case l.MaxEvents.Number < 0:
		return fmt.Errorf("max_events must be at least zero, got %d", l.MaxEvents.Number)
	case l.MaxWait < 0 || time.Duration(l.MaxWait) > maxMaxWait:
		return fmt.Errorf("max_wait must be from 0 to %s, got %s", duration.Format(maxMaxWait), duration.Format(time.Duration(l.MaxWait)))
	}
	if !CountsSlots(l.Algorithm) {
		if err := l.Window.validate(); err != nil {
			return err
		}
	}
	if err := l.Burst.Check("burst"); err != nil {
		return err
	}
	return fixedTimezone(l.Timezone)
}

// Numbers returns the numbers for a request.
func (l *Limit) Numbers(repl *caddy.Replacer) (n Numbers, err error) {
	n.Window = l.Window
	if n.Events, err = l.MaxEvents.Resolve(repl); err != nil {
		return n, fmt.Errorf("events: %w", err)
	}
	if n.Burst, err = l.Burst.Resolve(repl); err != nil {
		return n, fmt.Errorf("burst: %w", err)
	}
	if l.Burst.From != "" && n.Burst == 0 {
		n.Events = 0 // a bucket that holds nothing allows nothing; 0 as a number would be the largest burst
	}
	return n, nil
}

// Sample returns numbers to check the limit with when a config is loaded: those that are
// written, and for placeholders without a fallback some that fit them.
func (l *Limit) Sample() Numbers {
	n := Numbers{Events: l.MaxEvents.Number, Burst: l.Burst.Number, Window: l.Window}
	if l.MaxEvents.From != "" && !l.MaxEvents.Fallback {
		n.Events = max(1, min(n.Burst, algorithms.MaxEvents))
	}
	if l.Burst.From != "" && n.Burst == 0 {
		n.Burst = max(1, n.Events)
	}
	return n
}

// OtherSample returns numbers that differ from Sample in every number with a placeholder.
func (l *Limit) OtherSample() Numbers {
	n := l.Sample()
	if l.MaxEvents.From != "" {
		n.Events++
	}
	if l.Burst.From != "" {
		n.Burst++
	}
	return n
}

// fixed returns the options that are the same for every request.
func (l *Limit) fixed() algorithms.Limit {
	return algorithms.Limit{
		Refill: l.Refill, Mode: l.Mode, Align: l.Align,
		Lease: time.Duration(l.Lease), MaxWait: time.Duration(l.MaxWait),
	}
}

// Resolve returns the limit with the numbers of a request.
func (l *Limit) Resolve(n Numbers) (made algorithms.Limit, err error) {
	made = l.fixed()
	made.Events, made.Burst = n.Events, n.Burst
	made.Window, made.Calendar = time.Duration(n.Window.Duration), n.Window.Calendar
	if l.Timezone == "Local" { // not time.Local.String(), which is what the variable TZ names
		return made, errors.New("timezone Local differs from machine to machine: write a name such as Europe/Paris")
	}
	if l.Timezone != "" {
		if made.Location, err = time.LoadLocation(l.Timezone); err != nil {
			return made, fmt.Errorf("timezone %q: %w; write a name such as Europe/Paris", l.Timezone, err)
		}
	}
	return made, nil
}

// FindAlgorithm returns the algorithm of the limit.
func (l *Limit) FindAlgorithm() (algorithms.Algorithm, error) {
	if l.Algorithm == "" && l.Window.Calendar != 0 {
		return algorithms.FixedWindow{}, nil // no other algorithm has such windows
	}
	return algorithms.Get(cmp.Or(l.Algorithm, defaultAlgorithm))
}

// CountsSlots reports whether an algorithm is an [algorithms.Leaser]. Its limits have no window: a
// request holds what it takes for as long as it runs.
func CountsSlots(algorithm string) bool {
	a, err := algorithms.Get(algorithm)
	if err != nil {
		return false
	}
	_, ok := a.(algorithms.Leaser)
	return ok
}

// Describe returns the limit as a text, without the options that have their defaults. Two
// limits that mean the same have the same text.
func (l *Limit) Describe() string {
	algorithm, err := l.FindAlgorithm()
	if err != nil {
		return l.Algorithm
	}
	text := algorithm.Name() + " " + l.MaxEvents.String()
	if !CountsSlots(l.Algorithm) {
		text += "/" + l.Window.Format()
	}
	for _, option := range []struct{ word, usual string }{
		{l.Refill, algorithms.RefillSmooth}, {l.Mode, algorithms.ModeMeter}, {l.Align, algorithms.AlignClock},
	} {
		if option.word != "" && option.word != option.usual {
			text += " " + option.word
		}
	}
	if (l.Burst.From != "" || l.Burst.Number > 0 && l.MaxEvents.String() != "0") && l.Burst != *l.MaxEvents {
		text += " burst " + l.Burst.String()
	}
	if l.Timezone != "" && !strings.EqualFold(l.Timezone, "UTC") {
		text += " in " + l.Timezone
	}
	if l.Lease > 0 && time.Duration(l.Lease) != algorithms.DefaultLease {
		text += " lease " + duration.Format(time.Duration(l.Lease))
	}
	if l.Mode == algorithms.ModeQueue && l.MaxWait > 0 {
		text += " max_wait " + duration.Format(time.Duration(l.MaxWait))
	}
	return text
}

// Over returns the limit with what it leaves out taken from base. If it has another
// algorithm, only the options that all algorithms have are taken.
func (l Limit) Over(base *Limit) Limit {
	l.MaxEvents = cmp.Or(l.MaxEvents, base.MaxEvents)
	if l.Window == (Window{}) && !CountsSlots(l.Algorithm) {
		l.Window = base.Window
	}
	l.MaxWait = cmp.Or(l.MaxWait, base.MaxWait)
	if l.Algorithm != "" && l.Algorithm != base.Algorithm {
		return l
	}
	l.Algorithm = base.Algorithm
	l.Burst = cmp.Or(l.Burst, base.Burst)
	if l.Window.Calendar == base.Window.Calendar {
		l.Timezone = cmp.Or(l.Timezone, base.Timezone)
	}
	fixed := l.fixed().Over(base.fixed())
	l.Refill, l.Mode, l.Align, l.Lease = fixed.Refill, fixed.Mode, fixed.Align, caddy.Duration(fixed.Lease)
	return l
}

// ValidCost reports whether a request can have this cost.
func ValidCost(n int64) bool { return n >= 0 && n <= algorithms.MaxEvents }
