package redisstore

import (
	"fmt"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// answer takes the script's reply apart and gives each question its part. It believes
// nothing that cannot be.
func (c *call) answer(reply string) error {
	if len(c.units) == 0 && reply == "" {
		return nil // nothing was asked, but whether Redis answers
	}
	r := reader{rest: reply}
	if c.careful {
		if err := c.answerCare(&r); err != nil {
			return err
		}
	}
	now := r.number()
	if now < 0 || now > maxTime {
		return fmt.Errorf("redis says that it is %d microseconds after 1970", now)
	}
	if c.plain {
		if err := c.answerPlain(&r, now); err != nil {
			return err
		}
	} else if err := c.answerGroups(&r, now); err != nil {
		return err
	}
	if r.short || r.rest != "" {
		return fmt.Errorf("redis answered %d bytes at %d to %d checks, which is not what was asked for", len(reply), now, c.checks)
	}
	if c.careful {
		return c.tellUncharged()
	}
	return nil
}

// answerGroups reads the reply to a call that is not plain.
func (c *call) answerGroups(r *reader, now int64) error {
	for i := range c.units {
		u := &c.units[i]
		if len(u.askers) == 1 {
			if err := u.decided(r, now); err != nil {
				return err
			}
			continue
		}
		room := int(r.byte())
		if admitted := u.replay(r, now, true); admitted != room && !u.uncharged && !r.short {
			return errRoom(room, len(u.askers), admitted)
		}
	}
	return nil
}

func errRoom(room, asked, admitted int) error {
	return fmt.Errorf("redis says that there was room for %d of %d requests, and its states for %d", room, asked, admitted)
}

// decided reads the decisions that the script has made for the one who asked.
func (u *unit) decided(r *reader, now int64) error {
	a := &u.askers[0]
	for i := range u.items {
		flags := r.byte()
		var n [6]int64
		for j := range n {
			n[j] = r.number()
		}
		own := ""
		if flags&flagOwn != 0 {
			own = strings.Clone(r.text(int(r.uint16()))) // and not all of the reply, which may be that of many
		}
		quota, remaining, retry, next, reset, delay := n[0], n[1], n[2], n[3], n[4], n[5]
		allowed := flags&flagAllowed != 0
		if !u.items[i].mayBe(flags) || flags&flagOwn != 0 && own == "" || quota < 0 || remaining < 0 || remaining > quota ||
			allowed && (retry < 0 || retry > maxAhead) || !allowed && (retry == 0 || retry < -1 || retry > maxWait) ||
			next < 0 || next > reset || reset > maxWait || delay < 0 || delay > maxWait {
			return fmt.Errorf("redis answered what cannot be: flags %d, quota, remaining, retry, next, reset, delay %d", flags, n)
		}
		a.note(flags, &u.items[i])
		d := algorithms.Micros(allowed, quota, remaining, retry, next, reset, delay)
		d.At = now
		d.Exempt, d.Banned = flags&flagExempt != 0, flags&flagBanned != 0
		d.BanBegins, d.Override = flags&flagBanBegins != 0, own
		a.decisions[u.items[i].index] = d
	}
	return nil
}

// mayBe tells whether the flags are ones that the script has for the check.
func (i *item) mayBe(flags byte) bool {
	if i.sanctions == nil {
		return flags <= flagAllowed|flagDamaged
	}
	allowed, banned := flags&flagAllowed != 0, flags&flagBanned != 0
	return flags <= allFlags && !(allowed && banned) &&
		(allowed || flags&flagExempt == 0) && (banned || flags&flagBanBegins == 0)
}

// replay works out what each of those who asked the same is told, and says how many of
// them pass. The script has charged as many of them as there was room for, which is known
// to be the same as one after the other; it tells the states before, and the algorithms in
// Go answer as their twins would have.
func (u *unit) replay(r *reader, now int64, flags bool) (admitted int) {
	var room [4]algorithms.State
	states := append(room[:0], make([]algorithms.State, len(u.items))...)
	for i := range states {
		if flags {
			u.askers[0].note(r.byte(), &u.items[i])
		}
		states[i] = algorithms.State{r.number(), r.number(), r.number()}
	}
	if r.short {
		return 0 // which answer notices
	}
	for _, a := range u.askers {
		if u.decide(a, states, now) {
			admitted++
		}
	}
	return admitted
}

// decide is the script's part for one of those who ask: all are charged or none.
func (u *unit) decide(a asker, states []algorithms.State, now int64) bool {
	var room [4]algorithms.State
	next := append(room[:0], states...)
	pass := true
	take := func(i int, cost int64) *algorithms.Decision {
		counter := u.items[i].rule.Algorithm().(algorithms.Counter)
		d := &a.decisions[a.items[a.first+i].index]
		next[i], *d = counter.Take(states[i], u.items[i].prepared.Params, now, cost)
		d.At = now
		return d
	}
	for i := range u.items {
		pass = take(i, u.items[i].cost).Allowed && pass
	}
	if pass {
		copy(states, next)
		return true
	}
	for i := range u.items {
		if a.decisions[a.items[a.first+i].index].Allowed {
			take(i, 0)
		}
	}
	return false
}

// note takes note of flags.
func (a *asker) note(flags byte, i *item) {
	if flags&flagDamaged != 0 {
		a.damaged = i.rule
	}
}
