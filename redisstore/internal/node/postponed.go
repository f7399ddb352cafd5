package node

import (
	"errors"
	"os"
	"time"
)

// postponed is a deadline of a connection. Each call has a later one than the call before, and setting one
// costs more than a system call. So it is set only if it would be much too early. A read or write that
// it ends too early goes on with the deadline that is wanted.
type postponed struct {
	set, wanted time.Time
	slack       time.Duration // how much earlier than wanted it may be
}

// want says which deadline is wanted, and reports whether it must be set.
func (p *postponed) want(deadline time.Time) bool {
	p.wanted = deadline
	if early := deadline.Sub(p.set); early >= 0 && early < p.slack {
		return false
	}
	p.set, p.slack = deadline, 0
	if !deadline.IsZero() {
		p.slack = time.Until(deadline) / 8
	}
	return true
}

const (
	// lookTime is how long a read that has come to its end looks what has come by then, and a write whether there is room, and
	// maxLooks how often they do: this process may have been kept from running until the deadline, while the reply was there.
	lookTime = time.Millisecond
	maxLooks = 3
)

// goOn reports whether a read or write goes on that has failed, with another deadline: with the one that is wanted if that
// is later than the one that was set, or else with one for a look, of which so many are left.
func (p *postponed) goOn(err error, looks *int, set func(time.Time) error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	if !p.set.Equal(p.wanted) {
		p.set, p.slack = p.wanted, 0
		return set(p.wanted) == nil
	}
	if *looks--; *looks < 0 {
		return false
	}
	*p = postponed{}
	return set(time.Now().Add(lookTime)) == nil
}
