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

// early reports whether an error is that of a deadline before the one that is wanted, and sets that one.
func (p *postponed) early(err error, set func(time.Time) error) bool {
	if err == nil || p.set.Equal(p.wanted) || !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	p.set, p.slack = p.wanted, 0
	return set(p.wanted) == nil
}
