// Package limit is limits as configs have them: their JSON, their Caddyfile syntax, and the
// numbers that they have for a request.
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
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// defaultAlgorithm is what `events` and `window` mean when nothing else is said.
const defaultAlgorithm = "sliding_window_log"

// maxMaxWait bounds how long a request may be made to wait.
const maxMaxWait = time.Hour

// Limit is how many requests pass, and how they are counted.
type Limit struct {
	// How many requests a window has room for. 0 refuses all. Takes a placeholder, such as
	// `"{http.vars.quota} 100"`. Required.
	MaxEvents *Amount `json:"max_events,omitempty"`

	// The time the events are for: from 1ms to 3660d, or with `fixed_window` also `day`,
	// `week` (from Monday) or `month`. Takes a placeholder. Required, but for
	// `concurrency`, which has none.
	Window Window `json:"window,omitzero"`

	// How to count: `sliding_window_log` (the default) is exact, `sliding_window_counter`
	// nearly so with two numbers a key, `token_bucket` (also `gcra`) lets events come back
	// evenly and takes a burst, `leaky_bucket` can make requests wait for their turn,
	// `fixed_window` is the cheapest, `concurrency` limits requests at the same time.
	Algorithm string `json:"algorithm,omitempty"`

	// How many events a bucket holds at once. Takes a placeholder. Default: max_events.
	Burst Amount `json:"burst,omitzero"`

	// How a token bucket is refilled: `smooth` (the default), or `interval`: all of
	// max_events at once each window, counted from the first request.
	Refill string `json:"refill,omitempty"`

	// What a leaky bucket does: `meter` (the default) refuses what goes over the brim,
	// `queue` also makes requests leave evenly spaced, each waiting for its turn.
	Mode string `json:"mode,omitempty"`

	// When fixed windows start: `clock` (the default), at multiples of the window since
	// 1970, or `first_request`, with the first request after the last window.
	Align string `json:"align,omitempty"`

	// Where a `day`, `week` or `month` begins at midnight, such as `Europe/Paris`. Takes a
	// placeholder, such as `{http.vars.timezone} Europe/Paris`. Default: UTC.
	Timezone string `json:"timezone,omitempty"`

	// How long a slot of `concurrency` stays taken if its Caddy dies, from 1s to 1h. A
	// Caddy that lives renews it in time, however long a request takes. Default: 30s.
	Lease caddy.Duration `json:"lease,omitempty"`

	// How long a request may wait instead of being refused; it is held, and asked about
	// again when there should be room. In a queue it bounds the wait for the turn.
	// Default: 0, which is not at all, and in a queue without a bound.
	MaxWait caddy.Duration `json:"max_wait,omitempty"`
}

// Numbers are what of a limit may differ from request to request.
type Numbers struct {
	Events, Burst int64
	Window        Window
	Timezone      string
}

// Given tells whether there is a limit at all.
func (l *Limit) Given() bool { return l.MaxEvents != nil || l.Window != Window{} }

// Varies tells whether requests can have different numbers.
func (l *Limit) Varies() bool {
	return l.MaxEvents.From != "" || l.Window.From != "" || l.Burst.From != "" || l.TimeZone().From != ""
}

// TimeZone is the name of a time zone: text, or a placeholder and what to fall back to.
type TimeZone struct{ From, Name string }

func (l *Limit) TimeZone() TimeZone {
	if placeholder, fallback, ok := placeholder.Cut(l.Timezone); ok {
		return TimeZone{placeholder, fallback}
	}
	return TimeZone{Name: l.Timezone}
}

func (z TimeZone) Resolve(repl *caddy.Replacer) (string, error) {
	if z.From == "" {
		return z.Name, nil
	}
	text, err := placeholder.Value(repl, z.From, z.Name != "")
	if text == "" {
		text = z.Name
	}
	return text, err
}

// Check judges what has to do with no algorithm in particular.
func (l *Limit) Check() error {
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
		return fmt.Errorf("max_wait must be from 0 to %s, got %v", duration.Format(maxMaxWait), time.Duration(l.MaxWait))
	}
	if !Lends(l.Algorithm) {
		if err := l.Window.validate(); err != nil {
			return err
		}
	}
	if err := l.Burst.Check("burst"); err != nil {
		return err
	}
	return placeholder.CheckOption("timezone", l.TimeZone().From)
}

// Numbers are those of a request.
func (l *Limit) Numbers(repl *caddy.Replacer) (n Numbers, err error) {
	if n.Events, err = l.MaxEvents.Resolve(repl); err != nil {
		return n, fmt.Errorf("events: %w", err)
	}
	if n.Window, err = l.Window.Resolve(repl); err != nil {
		return n, fmt.Errorf("window: %w", err)
	}
	if n.Burst, err = l.Burst.Resolve(repl); err != nil {
		return n, fmt.Errorf("burst: %w", err)
	}
	if n.Timezone, err = l.TimeZone().Resolve(repl); err != nil {
		return n, fmt.Errorf("timezone: %w", err)
	}
	return n, nil
}

// Likely are numbers to try the limit with at load: those that are written, and for the
// others some that go with them.
func (l *Limit) Likely() Numbers {
	n := Numbers{
		Events: l.MaxEvents.Number, Burst: l.Burst.Number,
		Window: Window{Duration: l.Window.Duration, Calendar: l.Window.Calendar}, Timezone: l.TimeZone().Name,
	}
	if l.MaxEvents.From != "" && !l.MaxEvents.Fallback {
		n.Events = max(1, min(n.Burst, algorithms.MaxEvents))
	}
	if l.Burst.From != "" && n.Burst == 0 {
		n.Burst = max(1, n.Events)
	}
	if l.Window.From != "" && n.Window == (Window{}) {
		n.Window.Duration = caddy.Duration(time.Minute)
		if l.Timezone != "" {
			n.Window = Window{Calendar: algorithms.Day}
		}
	}
	return n
}

// Unlikely are numbers that differ from the likely ones wherever a request brings them.
func (l *Limit) Unlikely() Numbers {
	n := l.Likely()
	if l.MaxEvents.From != "" {
		n.Events++
	}
	if l.Burst.From != "" {
		n.Burst++
	}
	if l.Window.From != "" { // by 3, so that the rate differs too
		n.Window = Window{Duration: max(3*n.Window.Duration, caddy.Duration(time.Millisecond))}
	}
	if l.TimeZone().From != "" {
		n.Timezone = "Etc/GMT+5"
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
	if n.Timezone == time.Local.String() {
		return made, errors.New("timezone Local is that of each machine, and a fleet would disagree: write a name such as Europe/Paris")
	}
	if n.Timezone != "" {
		if made.Location, err = time.LoadLocation(n.Timezone); err != nil {
			return made, fmt.Errorf("timezone %q: %w; write a name such as Europe/Paris", n.Timezone, err)
		}
	}
	return made, nil
}

// Counting is the one that counts.
func (l *Limit) Counting() (algorithms.Algorithm, error) {
	if l.Algorithm == "" {
		return algorithms.Get(defaultAlgorithm)
	}
	return algorithms.Get(l.Algorithm)
}

// Lends tells of algorithms without a window: a request holds what it takes while it lives.
func Lends(algorithm string) bool {
	a, err := algorithms.Get(algorithm)
	if err != nil {
		return false
	}
	_, ok := a.(algorithms.Lender)
	return ok
}

// Describe says what the limit comes to: only what is not as it would be anyway.
func (l *Limit) Describe() string {
	counting, err := l.Counting()
	if err != nil {
		return l.Algorithm
	}
	text := counting.Name() + " " + l.MaxEvents.String()
	if !Lends(l.Algorithm) {
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
	if l.MaxEvents == nil {
		l.MaxEvents = base.MaxEvents
	}
	if l.Window == (Window{}) && !Lends(l.Algorithm) {
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

func ValidCost(n int64) bool { return n >= 0 && n <= algorithms.MaxEvents }
