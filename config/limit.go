package config

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/option"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// defaultAlgorithm is the algorithm of limits that name none.
const defaultAlgorithm = "sliding_window_log"

// adaptive is the algorithm of zones that became a directive.
const adaptive = "adaptive"

// Limit is how many requests pass, and how they are counted.
type Limit struct {
	// How many requests a window has room for, from 0 to 1000000000000; with
	// `sliding_window_log` at most 50000000, with `concurrency` at most 1000000. 0 refuses
	// all. May be a placeholder, with or without a fallback, e.g. `"{http.vars.quota} 100"`.
	// Default: required, unless plans say it.
	MaxEvents *Amount `json:"max_events,omitempty" caddyfile:"events" range:"0..1000000000000" unit:"requests" syntax:"<n> | <placeholder> [<n>]" default:"=required, unless plans say it"`

	// The length of a window, from 1ms to 3660d; with `fixed_window` also `day`, `week`
	// (from Monday), `month` or `year`. Required, except with `concurrency` or in a zone with plans.
	Window Window `json:"window,omitzero" range:"1ms..3660d" syntax:"<duration>|day|week|month|year" default:"=required, except with concurrency or plans"`

	// In a Caddyfile, events and window in one: `100/1m`, `10r/s` or `1000/day`.
	_ struct{} `json:"-" caddyfile:"rate" syntax:"<events>/<window>"`

	// How to count: one of `sliding_window_log`, `sliding_window_counter`, `token_bucket`, `gcra`,
	// `leaky_bucket`, `fixed_window` or `concurrency`. `sliding_window_log` is exact, `sliding_window_counter` nearly, with two
	// counts per key. `token_bucket` (also called `gcra`) gives events back evenly and allows bursts. `leaky_bucket` can
	// make requests wait for their turn. `fixed_window` is the cheapest. `concurrency` limits how many requests run at once.
	// In a Caddyfile, a rate may follow, and the events after `concurrency`. Default: `sliding_window_log`, and `fixed_window` if the window is a `day`, `week`,
	// `month` or `year`.
	Algorithm string `json:"algorithm,omitempty" syntax:"<algorithm> [<events>/<window>] | concurrency [<events>]" default:"=sliding_window_log; fixed_window if the window is a day, week, month or year"`

	// How many events a bucket holds, for `token_bucket` and `leaky_bucket`, from 1 to
	// 1000000000000. May be a placeholder, with or without a fallback; if its value is 0, nothing is allowed. Default:
	// max_events.
	Burst Amount `json:"burst,omitzero" range:"1..1000000000000" unit:"events" syntax:"<n> | <placeholder> [<n>]" default:"=events"`

	// How a `token_bucket` is refilled: either `smooth` or `interval`. `smooth` gives events back evenly. `interval` gives
	// all of max_events back at the end of each window, counted from the first request.
	// Default: `smooth`.
	Refill string `json:"refill,omitempty" words:"smooth|interval" default:"=smooth"`

	// What a `leaky_bucket` does: either `meter` or `queue`. `meter` refuses requests that would overflow the bucket.
	// `queue` does so too, and makes the other requests wait so that they leave evenly
	// spaced. Default: `meter`.
	Mode string `json:"mode,omitempty" words:"meter|queue" default:"=meter"`

	// When the windows of `fixed_window` start: either `clock` or `first_request`. `clock` starts them at multiples of their
	// length since 1970. `first_request` starts one with the first request after the
	// previous window. Default: `clock`.
	Align string `json:"align,omitempty" words:"clock|first_request" default:"=clock"`

	// The time zone in which a `day`, `week`, `month` or `year` starts, e.g. `Europe/Paris`. Default: `UTC`.
	Timezone string `json:"timezone,omitempty" syntax:"<name>" default:"=UTC"`

	// How long a slot of `concurrency` stays taken after its instance has died, from 1s to 1h.
	// A running Caddy renews its slots in time, however long a request takes. Default: 30s.
	Lease caddy.Duration `json:"lease,omitempty" range:"1s..1h" default:"=30s"`

	// How long a request may wait instead of being refused, from 0s to 1h. It is held back and
	// tried again when there should be room. In a queue, this is the longest wait for a
	// turn. Default: 0, which means not to wait, and in a queue to wait without a bound.
	MaxWait *caddy.Duration `json:"max_wait,omitempty" range:"0s..1h" default:"=0s"`
}

// Numbers are the numbers of a limit that can differ from request to request.
type Numbers struct{ Events, Burst int64 }

// Varies reports whether requests can have different numbers.
func (l *Limit) Varies() bool {
	return l.MaxEvents.From != "" || l.Burst.From != ""
}

// Lines are the options of a limit that are more than a value.
func (l *Limit) Lines(d *caddyfile.Dispenser) option.Lines {
	lines := make(option.Lines)
	for _, name := range []string{"rate", "algorithm"} {
		lines[name] = func() error {
			if err := l.set(name, d.RemainingArgs()); err != nil {
				return d.WrapErr(err)
			}
			return nil
		}
	}
	return lines
}

// set sets an option from its arguments. A rate sets events and window, as one behind an algorithm does.
func (l *Limit) set(name string, args []string) error {
	switch {
	case name == "rate" && len(args) == 1:
		return l.setRate(args[0])
	case name == "rate":
		return fmt.Errorf("rate takes one argument, such as 100/1m, got '%s'", strings.Join(args, " "))
	case name != "algorithm":
		return option.Set(l, name, args)
	case len(args) == 0 || len(args) > 2 || args[0] == "":
		return errors.New("algorithm takes its name and a rate, such as token_bucket 10/1s")
	}
	if err := option.Set(l, name, args[:1]); err != nil || len(args) == 1 {
		return err
	}
	switch {
	case !CountsSlots(l.Algorithm):
		return l.setRate(args[1])
	case strings.Contains(args[1], "/"):
		return fmt.Errorf("algorithm %s counts running requests, and has no window: write a number, such as algorithm %[1]s 5, got '%s'", l.Algorithm, args[1])
	}
	return l.set("events", args[1:])
}

// setRate sets events and window by a rate such as 10/1s, 100/m, 10r/s or 1000/day.
func (l *Limit) setRate(text string) error {
	events, window, ok := strings.Cut(text, "/")
	if !ok {
		return fmt.Errorf("invalid rate '%s': write events/window, such as 10/1s, 100/m or 1000/day", text)
	}
	events = strings.TrimSuffix(events, "r") // as in nginx
	for _, part := range [][]string{{"events", events}, {"window", cmp.Or(units[window], window)}} {
		if err := option.Set(l, part[0], part[1:]); err != nil {
			return fmt.Errorf("rate '%s': %w", text, err)
		}
	}
	return nil
}

// units are the units of time that a rate can be for. Caddy's days have 24 hours.
var units = map[string]string{
	"s": "1s", "sec": "1s", "second": "1s", "m": "1m", "min": "1m", "minute": "1m", "h": "1h", "hour": "1h", "d": "1d",
}

// Check reports what is wrong whatever the algorithm is.
func (l *Limit) Check() error {
	switch slots := CountsSlots(l.Algorithm); {
	case l.Algorithm == adaptive:
		return errors.New("algorithm adaptive was removed: write the directive adaptive_concurrency { ... } next to rate_limit (docs/compatibility.md#removed)")
	case l.MaxEvents == nil && slots:
		return errors.New("a zone for concurrency requires events, in JSON max_events, the number of slots")
	case l.MaxEvents == nil, l.Window == Window{} && !slots:
		return errors.New("a zone requires both events, in JSON max_events, and a window, such as rate 100/1m")
	case strings.HasPrefix(l.MaxEvents.From, placeholder.JSONPrefix), strings.HasPrefix(l.Burst.From, placeholder.JSONPrefix):
		return fmt.Errorf("events %s, burst %s: clients would choose their limit with a field of their bodies; take a placeholder that they cannot choose",
			l.MaxEvents, l.Burst)
	}
	return cmp.Or(placeholder.CheckOption("events", l.MaxEvents.From), placeholder.CheckOption("burst", l.Burst.From))
}

// Numbers returns the numbers for a request.
func (l *Limit) Numbers(repl *caddy.Replacer) (n Numbers, err error) {
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
	n := Numbers{Events: l.MaxEvents.Number, Burst: l.Burst.Number}
	if l.MaxEvents.From != "" && !l.MaxEvents.Fallback {
		n.Events = max(1, min(n.Burst, algorithms.MaxEvents))
	}
	if l.Burst.From != "" && n.Burst == 0 {
		n.Burst = max(1, n.Events)
	}
	return n
}

// Wait returns how long a request may wait.
func (l *Limit) Wait() time.Duration {
	if l.MaxWait == nil {
		return 0
	}
	return time.Duration(*l.MaxWait)
}

// Resolve returns the limit with the numbers of a request.
func (l *Limit) Resolve(n Numbers) (made algorithms.Limit, err error) {
	made = algorithms.Limit{
		Events: n.Events, Burst: n.Burst, Window: time.Duration(l.Window.Duration), Calendar: l.Window.Calendar,
		Refill: l.Refill, Mode: l.Mode, Align: l.Align, Lease: time.Duration(l.Lease), MaxWait: l.Wait(),
	}
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
	if l.Mode == algorithms.ModeQueue && l.Wait() > 0 {
		text += " max_wait " + duration.Format(l.Wait())
	}
	return text
}

// Over returns the limit with what it leaves out taken from base. If it has another
// algorithm, only the options that all algorithms have are taken.
func (l Limit) Over(base *Limit) Limit {
	from := *base
	if l.Algorithm != "" && l.Algorithm != base.Algorithm {
		from = Limit{MaxEvents: base.MaxEvents, Window: base.Window, MaxWait: base.MaxWait}
	}
	if CountsSlots(l.Algorithm) {
		from.Window = Window{}
	}
	if cmp.Or(l.Window, from.Window).Calendar != base.Window.Calendar {
		from.Timezone = ""
	}
	option.Inherit(&l, &from)
	return l
}

// ValidCost reports whether a request can have this cost.
func ValidCost(n int64) bool { return n >= 0 && n <= algorithms.MaxEvents }
