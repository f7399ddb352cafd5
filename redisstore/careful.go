package redisstore

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// A Redis that is full, or a replica, still answers. The script fails at its first write,
// which is proof that nothing was written, and the same call is then made once more with
// care: the script finds out whether Redis can write, decides all that needs no write, and
// names the groups that it could not charge. take.lua describes the form.

// careTime is how long calls are made with care from the start after one had to be made
// twice. If Redis has memory again, the answer tells. In all other cases a plain call finds
// out, because go-redis closes the connection of a call that met a READONLY: the address may
// lead elsewhere by now.
const careTime = 100 * time.Millisecond

// wary reports whether calls are made with care from the start.
func (l *lane) wary() bool {
	until := l.waryUntil.Load()
	return until != 0 && int64(time.Since(l.epoch)) < until
}

// learnCare takes note of what a call with care has found out; again says that it was made
// twice.
func (l *lane) learnCare(unable *unwrittenError, again bool) {
	switch {
	case unable == nil:
		l.waryUntil.Store(0)
	case again || unable.full():
		l.waryUntil.Store(int64(time.Since(l.epoch) + careTime))
	}
}

// unwrittenError is why Redis cannot write, in its own words. What meets it was certainly
// not carried out.
type unwrittenError struct{ said string }

func (e *unwrittenError) Error() string { return e.said }

// RedisError implements [redis.Error].
func (*unwrittenError) RedisError() {}

// isUnwritten reports whether an error says that a charge could not be written, and that all
// else is as it was.
func isUnwritten(err error) bool { return errors.As(err, new(*unwrittenError)) }

// Is reports whether the error is [store.ErrFull].
func (e *unwrittenError) Is(target error) bool { return target == store.ErrFull && e.full() }

func (e *unwrittenError) full() bool { return kindOfReply(e.said) == store.FailureOOM }

// answerCare reads what the reply to a careful call begins with.
func (c *call) answerCare(r *reader) error {
	for {
		group := int(r.uint16())
		if group == 0 {
			break
		}
		if group > len(c.units) {
			return fmt.Errorf("redis says that group %d of %d was not charged", group, len(c.units))
		}
		c.units[group-1].uncharged = true
	}
	if said := r.text(int(r.uint16())); said != "" {
		c.unable = &unwrittenError{strings.TrimPrefix(said, "-")}
	}
	return nil
}

// tellUncharged tells those whose groups were not charged. A check that stands apart holds
// up nobody: it keeps its decision, although nothing was charged for it.
func (c *call) tellUncharged() error {
	for i := range c.units {
		if !c.units[i].uncharged {
			continue
		}
		if c.unable == nil {
			return fmt.Errorf("redis has not charged group %d, and does not say why", i+1)
		}
		for _, a := range c.units[i].askers {
			if group := a.items[a.first : a.first+len(c.units[i].items)]; !group[0].apart || a.dry {
				a.err = c.unable
			} else {
				for j := range group {
					group[j].hold = "" // nothing is to be renewed
				}
			}
		}
	}
	return nil
}
