package algorithms

import (
	"fmt"
	"time"
)

// Limit is a limit as a user writes it.
type Limit struct {
	// Events is how many events a window has room for. 0 refuses everything.
	Events int64

	// Window is the time the events are for. Calendar stands in its place for windows
	// that differ in length.
	Window   time.Duration
	Calendar Calendar

	// Location is where calendar windows begin at midnight. Default: UTC.
	Location *time.Location

	// Burst is how many events a bucket holds at once. 0 means Events. Only buckets
	// have one.
	Burst int64

	// Refill says how a token bucket is refilled: "smooth" (or empty) or "interval".
	Refill string

	// Mode says what a leaky bucket does: "meter" (or empty) or "queue".
	Mode string

	// MaxWait bounds the wait in a leaky bucket's queue. 0 is no bound.
	MaxWait time.Duration

	// Align says when fixed windows start: "clock" (or empty) or "first_request".
	Align string

	// Lease is how long a slot of the concurrency limit is held without being renewed.
	// 0 means DefaultLease.
	Lease time.Duration
}

// The bounds of a limit. Within them every number in every twin is an exact integer
// in a double, which is all that Lua has.
const (
	// MaxEvents bounds events, burst and cost.
	MaxEvents int64 = 1_000_000_000_000

	// MinWindow and MaxWindow bound the window.
	MinWindow = time.Millisecond
	MaxWindow = 3660 * 24 * time.Hour

	// MaxRecovery bounds the time in which a full bucket comes back.
	MaxRecovery = 3660 * 24 * time.Hour

	// MaxLogEvents bounds the events of an algorithm that remembers every charge: as many
	// charges of one event make as many entries.
	MaxLogEvents int64 = 50_000_000

	// MaxSlots bounds the events of the concurrency limit.
	MaxSlots int64 = 1_000_000

	// MaxHold bounds the slots of one request, for each is an entry in Redis. A request of
	// more is refused for good.
	MaxHold int64 = 1000

	// MinLease and MaxLease bound a lease.
	MinLease = time.Second
	MaxLease = time.Hour

	// DefaultLease is for limits that say nothing of it.
	DefaultLease = 30 * time.Second
)

// What Refill, Mode and Align can be.
const (
	RefillSmooth      = "smooth"
	RefillInterval    = "interval"
	ModeMeter         = "meter"
	ModeQueue         = "queue"
	AlignClock        = "clock"
	AlignFirstRequest = "first_request"
)

// has says which parts of a limit an algorithm understands.
type has struct{ window, calendar, burst, refill, mode, align, lease bool }

// validate checks a limit for an algorithm that understands some parts of it.
func (l Limit) validate(algorithm string, h has) error {
	for _, part := range []struct {
		name   string
		remedy string
		given  any
		absent bool
		ok     bool
	}{
		{"burst", "use algorithm token_bucket or leaky_bucket", l.Burst, l.Burst == 0, h.burst},
		{"refill", "it is for token_bucket", l.Refill, l.Refill == "", h.refill},
		{"mode", "it is for leaky_bucket", l.Mode, l.Mode == "", h.mode},
		{"align", "it is for fixed_window", l.Align, l.Align == "", h.align},
		{"lease", "it is for concurrency", l.Lease, l.Lease == 0, h.lease},
		{"window", "windows of the calendar are for fixed_window", l.Calendar, l.Calendar == 0, h.calendar},
		{"window", "a slot is taken for as long as the request lives", l.Window, l.Window == 0, h.window || l.Calendar != 0},
	} {
		if !part.absent && !part.ok {
			return fmt.Errorf("%s has no meaning for %s, got %v; %s", part.name, algorithm, part.given, part.remedy)
		}
	}
	switch {
	case l.Events < 0:
		return fmt.Errorf("events must be at least 0, got %d", l.Events)
	case l.Events > MaxEvents:
		return fmt.Errorf("events must be at most %d, got %d", MaxEvents, l.Events)
	case l.Burst < 0:
		return fmt.Errorf("burst must be at least 0, got %d", l.Burst)
	case l.Burst > MaxEvents:
		return fmt.Errorf("burst must be at most %d, got %d", MaxEvents, l.Burst)
	}
	if l.Location != nil && l.Calendar == 0 {
		return fmt.Errorf("timezone is for windows of a day, week or month, got window %v", l.Window)
	}
	if !h.window || l.Calendar != 0 {
		return nil
	}
	switch {
	case l.Window < MinWindow:
		return fmt.Errorf("window must be at least %v, got %v", MinWindow, l.Window)
	case l.Window > MaxWindow:
		return fmt.Errorf("window must be at most %v, got %v", MaxWindow, l.Window)
	case l.Window%time.Microsecond != 0:
		return fmt.Errorf("window must be a whole number of microseconds, got %v", l.Window)
	}
	return nil
}

// oneOf checks a word.
func oneOf(option, got, first, second string) error {
	if got != "" && got != first && got != second {
		return fmt.Errorf("%s must be %s or %s, got %q", option, first, second, got)
	}
	return nil
}
