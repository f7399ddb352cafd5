package protocol

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// A Redis that is full, or a replica, still answers. The script fails at its first write,
// which is proof that nothing was written, and the same call is then made once more with
// care: the script finds out whether Redis can write, decides all that needs no write, and
// names the groups that it could not charge. lua/take.lua describes the form.

// UnwrittenError is why Redis cannot write, in its own words. A charge that meets it was
// certainly not carried out, and everything else is as it was.
type UnwrittenError struct{ said string }

// Unwritten returns the error of a Redis that cannot write.
func Unwritten(said string) *UnwrittenError { return &UnwrittenError{said} }

// Error implements error.
func (e *UnwrittenError) Error() string { return e.said }

// RedisError implements the error interface of go-redis.
func (*UnwrittenError) RedisError() {}

// Is reports whether the error is [store.ErrFull].
func (e *UnwrittenError) Is(target error) bool { return target == store.ErrFull && e.Full() }

// Full reports whether Redis lacks memory.
func (e *UnwrittenError) Full() bool { return ReadError(e.said).Failure() == store.FailureOOM }

// IsUnwritten reports whether an error is an [UnwrittenError].
func IsUnwritten(err error) bool { return errors.As(err, new(*UnwrittenError)) }

// Unable returns why Redis cannot write, from the reply to a careful call; nil if it can.
func (b *Batch) Unable() *UnwrittenError { return b.unable }

// readUncharged reads the beginning of the reply to a careful call.
func (b *Batch) readUncharged(r *reader) error {
	for {
		group := int(r.uint16())
		if group == 0 {
			break
		}
		if group > len(b.groups) {
			return fmt.Errorf("redis answered that group %d of %d was not charged", group, len(b.groups))
		}
		b.groups[group-1].uncharged = true
	}
	b.unable = r.unable()
	return nil
}

// unable reads why Redis cannot write; nil if it can.
func (r *reader) unable() *UnwrittenError {
	if said := r.text(int(r.uint16())); said != "" {
		return Unwritten(strings.TrimPrefix(strings.Clone(said), "-")) // and not all of the reply
	}
	return nil
}

// failUncharged fails the requests whose groups were not charged. A check that is decided by
// itself holds up no other: it keeps its decision, although nothing was charged for it.
func (b *Batch) failUncharged() error {
	for i := range b.groups {
		if !b.groups[i].uncharged {
			continue
		}
		if b.unable == nil {
			return fmt.Errorf("redis answered that group %d was not charged, without a reason", i+1)
		}
		for _, w := range b.groups[i].waiters {
			if ops := w.Ops[w.first : w.first+len(b.groups[i].ops)]; !ops[0].Alone || w.AllAlone {
				w.Err = b.unable
			} else {
				for j := range ops {
					// A slot has a name, and is given back all the same: a call before this one may have taken it.
					w.Decisions[ops[j].Index].Uncharged = ops[j].LeaseID == ""
					ops[j].LeaseID = "" // nothing is to be renewed
				}
			}
		}
	}
	return nil
}
