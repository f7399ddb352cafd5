package clock

import "time"

// Imagined is a clock that goes on only while somebody sleeps, and then at once. It is for one goroutine.
type Imagined struct{ now time.Duration }

// Now implements [Clock].
func (i *Imagined) Now() time.Duration { return i.now }

// Sleep implements [Sleeper].
func (i *Imagined) Sleep(d time.Duration) { i.now += d }

// AfterFunc implements [Clock]. It never calls f, because time passes only by a sleep.
func (*Imagined) AfterFunc(time.Duration, func()) Timer { return never{} }

// never is a timer that does not go off.
type never struct{}

func (never) Stop() bool               { return true }
func (never) Reset(time.Duration) bool { return true }
