package algorithms

import (
	"cmp"
	"fmt"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/duration"
)

// length is a duration that is written as people do, once it is shown.
type length time.Duration

func (d length) String() string { return duration.Format(time.Duration(d)) }

// Limit is a limit as a config has it. Algorithm.Prepare rejects fields that mean nothing to
// the algorithm.
type Limit struct {
	// Events is how many events a window has room for, from 0 to MaxEvents. 0 refuses
	// everything.
	Events int64

	// Window is the length of a window, from MinWindow to MaxWindow, in whole microseconds.
	// Calendar is given in its place for windows that differ in length.
	Window   time.Duration
	Calendar Calendar

	// Location is the time zone in which calendar windows begin at midnight. Nil is UTC.
	Location *time.Location

	// Burst is how many events a bucket holds, up to MaxEvents. 0 means as many as Events.
	Burst int64

	// Refill is how a token bucket is refilled: "smooth", the default, or "interval".
	Refill string

	// Mode is what a leaky bucket does: "meter", the default, or "queue".
	Mode string

	// MaxWait bounds the wait in the queue of a leaky bucket. 0 means no bound.
	MaxWait time.Duration

	// Align is when fixed windows start: "clock", the default, or "first_request".
	Align string

	// Lease is how long a slot of the concurrency limit stays taken without being renewed,
	// from MinLease to MaxLease, in whole microseconds. 0 means DefaultLease.
	Lease time.Duration

	// Hold is how long units that were charged ahead may be held: see CheckHold. 0 means that none are.
	Hold time.Duration
}

// The bounds of a limit. Within them every number is an exact integer also in a double, the
// only type of number in Lua.
const (
	// MaxEvents bounds events, burst and cost.
	MaxEvents int64 = 1_000_000_000_000

	// MinWindow and MaxWindow bound Window. MaxWindow bounds the time in which all tokens of a bucket come back, too.
	MinWindow = time.Millisecond
	MaxWindow = 3660 * 24 * time.Hour

	// MaxLogEvents bounds the events of an algorithm that remembers every charge, because
	// each charge of one event is an entry.
	MaxLogEvents int64 = 50_000_000

	// MaxSlots bounds the events of the concurrency limit.
	MaxSlots int64 = 1_000_000

	// MaxSlotCost bounds the slots of one request, because each is an entry in Redis. A request
	// that needs more is always refused.
	MaxSlotCost int64 = 1000

	// MinLease and MaxLease bound Lease.
	MinLease = time.Second
	MaxLease = time.Hour

	// DefaultLease is the lease of limits that give none.
	DefaultLease = 30 * time.Second
)

// The values of Refill, Mode and Align.
const (
	RefillSmooth      = "smooth"
	RefillInterval    = "interval"
	ModeMeter         = "meter"
	ModeQueue         = "queue"
	AlignClock        = "clock"
	AlignFirstRequest = "first_request"
)

// supports says which options of a limit mean something to an algorithm.
type supports struct{ window, calendar, burst, refill, mode, align, lease, hold bool }

// validate checks a limit for an algorithm that supports some of its options.
func (l Limit) validate(algorithm string, has supports) error {
	for _, option := range [...]struct {
		name, fix         string
		value             any
		absent, supported bool
		one, other        string // the value must be one of them, if there are any
	}{
		{"burst", "use algorithm token_bucket or leaky_bucket", l.Burst, l.Burst == 0, has.burst, "", ""},
		{"refill", "it is for token_bucket", l.Refill, l.Refill == "", has.refill, RefillSmooth, RefillInterval},
		{"mode", "it is for leaky_bucket", l.Mode, l.Mode == "", has.mode, ModeMeter, ModeQueue},
		{"align", "it is for fixed_window", l.Align, l.Align == "", has.align, AlignClock, AlignFirstRequest},
		{"lease", "it is for concurrency", length(l.Lease), l.Lease == 0, has.lease, "", ""},
		{"lend", "each request asks for its slot", length(l.Hold), l.Hold == 0, has.hold, "", ""},
		{"window", "use algorithm fixed_window, or a duration such as 24h", l.Calendar, l.Calendar == 0, has.calendar, "", ""},
		{"window", "a slot is taken for as long as the request runs", length(l.Window), l.Window == 0, has.window || l.Calendar != 0, "", ""},
	} {
		switch {
		case option.absent:
		case !option.supported:
			return fmt.Errorf("%s has no meaning for %s, got %v; %s", option.name, algorithm, option.value, option.fix)
		case option.one != "" && option.value != option.one && option.value != option.other:
			return fmt.Errorf("%s must be %s or %s, got %q", option.name, option.one, option.other, option.value)
		}
	}
	switch {
	case l.Events < 0 || l.Events > MaxEvents:
		return fmt.Errorf("events must be from 0 to %d, got %d", MaxEvents, l.Events)
	case l.Burst < 0 || l.Burst > MaxEvents:
		return fmt.Errorf("burst must be from 0 to %d, got %d", MaxEvents, l.Burst)
	}
	if l.Location != nil && l.Calendar == 0 {
		hint := ""
		if l.Window == 24*time.Hour {
			hint = "; did you mean window day?"
		}
		return fmt.Errorf("timezone is for windows of a day, week, month or year, got window %s%s", duration.Format(l.Window), hint)
	}
	if !has.window || l.Calendar != 0 {
		return nil
	}
	switch {
	case l.Window < MinWindow || l.Window > MaxWindow:
		return fmt.Errorf("window must be from %s to %s, got %s",
			duration.Format(MinWindow), duration.Format(MaxWindow), duration.Format(l.Window))
	case l.Window%time.Microsecond != 0:
		return fmt.Errorf("window must be a whole number of microseconds, got %s", duration.Format(l.Window))
	}
	return nil
}

// Over returns the limit with the options that it leaves out taken from base, a limit of the
// same algorithm. Only Events and Burst are never taken from base. The hold and the time zone of calendar
// windows always are.
func (l Limit) Over(base Limit) Limit {
	if l.Window == 0 && l.Calendar == 0 {
		l.Window, l.Calendar = base.Window, base.Calendar
	}
	l.Refill, l.Mode, l.Align = cmp.Or(l.Refill, base.Refill), cmp.Or(l.Mode, base.Mode), cmp.Or(l.Align, base.Align)
	l.Lease, l.MaxWait = cmp.Or(l.Lease, base.Lease), cmp.Or(l.MaxWait, base.MaxWait)
	l.Hold = base.Hold
	if l.Calendar != 0 {
		l.Location = base.Location
	}
	return l
}
