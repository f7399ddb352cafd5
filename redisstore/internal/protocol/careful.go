package protocol

import (
	"errors"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// A Redis that is full, or a replica, still answers. The script fails at its first write,
// which is proof that nothing was written, and the same call is then made once more with
// care: the script decides, and writes nothing. What is used up is refused, and what would be charged fails.

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
func (e *UnwrittenError) Is(target error) bool {
	return target == store.ErrFull && ReadError(e.said).Failure() == store.FailureOOM
}

// IsUnwritten reports whether an error is an [UnwrittenError].
func IsUnwritten(err error) bool { return errors.As(err, new(*UnwrittenError)) }

// TakeCare makes the next call a careful one: an error of the last one says that Redis refuses to write.
func (b *Batch) TakeCare(unwritten *UnwrittenError) { b.unwritten = unwritten }

// Careful reports whether the next call is a careful one.
func (b *Batch) Careful() bool { return b.unwritten != nil }

// failUncharged fails the requests that would be charged. A check that is decided by
// itself holds up no other: it keeps its decision, although nothing was charged for it.
func (b *Batch) failUncharged() {
	for i := range b.groups {
		for _, w := range b.groups[i].waiters {
			ops := w.Ops[w.first : w.first+len(b.groups[i].ops)]
			if !w.charges(ops) {
				continue
			}
			if !ops[0].Alone || w.AllAlone {
				w.Err = b.unwritten
				continue
			}
			for j := range ops {
				// A slot has a name, and is given back all the same: a call before this one may have taken it.
				w.Decisions[ops[j].Index].Uncharged = ops[j].LeaseID == ""
				ops[j].LeaseID = "" // nothing is to be renewed
			}
		}
	}
}

// charges reports whether a group of the request is charged, by its decisions.
func (r *Request) charges(group []Op) bool {
	return r.Charged(group) && slices.ContainsFunc(group, func(o Op) bool {
		return o.Kind == Decide && o.Cost > 0 && !r.Decisions[o.Index].Exempt
	})
}
