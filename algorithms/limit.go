package algorithms

import (
	"fmt"
	"time"
)

// Limit is a limit as a user writes it.
type Limit struct {
	// Events is how many events a window has room for. 0 refuses everything.
	Events int64

	// Window is the time the events are for.
	Window time.Duration

	// Burst is how many events a bucket holds at once. 0 means Events. Only buckets
	// have one.
	Burst int64
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

	// MaxLogEvents bounds the events of an algorithm that remembers each of them.
	MaxLogEvents int64 = 50_000_000
)

// validate checks what all algorithms have in common.
func (l Limit) validate() error {
	switch {
	case l.Events < 0:
		return fmt.Errorf("events must be at least 0, got %d", l.Events)
	case l.Events > MaxEvents:
		return fmt.Errorf("events must be at most %d, got %d", MaxEvents, l.Events)
	case l.Window < MinWindow:
		return fmt.Errorf("window must be at least %v, got %v", MinWindow, l.Window)
	case l.Window > MaxWindow:
		return fmt.Errorf("window must be at most %v, got %v", MaxWindow, l.Window)
	case l.Window%time.Microsecond != 0:
		return fmt.Errorf("window must be a whole number of microseconds, got %v", l.Window)
	case l.Burst < 0:
		return fmt.Errorf("burst must be at least 0, got %d", l.Burst)
	case l.Burst > MaxEvents:
		return fmt.Errorf("burst must be at most %d, got %d", MaxEvents, l.Burst)
	}
	return nil
}

// withoutBurst is validate for algorithms that have no burst.
func (l Limit) withoutBurst(algorithm string) error {
	if err := l.validate(); err != nil {
		return err
	}
	if l.Burst != 0 {
		return fmt.Errorf("burst has no meaning for %s, got %d; use algorithm token_bucket", algorithm, l.Burst)
	}
	return nil
}
