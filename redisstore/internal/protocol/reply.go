package protocol

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// The flags of a reply to a check.
const (
	flagChanged = 1 // of adjustments and renewals
	flagDamaged = 2
)

// What the reply says of the override of a key.
const (
	noOverride = iota
	exempt
	banned
	limited
)

const (
	// maxWait is above every wait that a valid limit can lead to, in microseconds.
	maxWait = 1 << 50

	// maxAhead is above how far ahead of the clock a charge can be booked, in microseconds: the clock may have
	// gone back by a century.
	maxAhead = 1 << 52

	// maxTime is above every time of a clock, in microseconds since 1970.
	maxTime = 1 << 53
)

// stateSize is how many bytes of the state of a Counter are in a reply.
const stateSize = 36

// Read reads the script's reply and gives each request its part. A reply that cannot be is an
// error, never a decision.
func (b *Batch) Read(reply string) error {
	r := Reader{Rest: reply}
	if err := b.readChecks(&r); err != nil {
		return err
	}
	if r.Short || r.Rest != "" {
		return fmt.Errorf("redis answered an invalid reply of %d bytes to %d checks", len(reply), b.checks)
	}
	if b.Careful() {
		b.failUncharged()
	}
	return nil
}

// readChecks reads the reply from its end: the time, and how many of the requests did not pass. Before these are the
// checks. That the script has charged as many requests as pass here proves that both decide alike.
func (b *Batch) readChecks(r *Reader) error {
	micros := r.last(maxTime)
	now := r.last(maxTime/1_000_000)*1_000_000 + micros
	if now < 0 || now > maxTime {
		return fmt.Errorf("redis answered an invalid time: %d microseconds since 1970", now)
	}
	refused, asked, admitted := int(r.last(math.MaxUint16)), 0, 0
	states := *r
	if b.countersOnly {
		r.text(stateSize * b.checks)
		for !r.Short && len(r.Rest) > 0 {
			if !b.mark(int(r.uint16())) {
				r.Short = true
			}
		}
		r = &states
	}
	for i := range b.groups {
		g := &b.groups[i]
		if err := b.read(g, r); err != nil {
			return err
		}
		if kind := g.ops[0].Kind; (kind == Decide || kind == Peek) && !r.Short {
			asked += len(g.waiters)
			admitted += b.decide(g, now)
		}
	}
	if !r.Short && !b.Careful() && asked-refused != admitted {
		return fmt.Errorf("redis answered room for %d of %d requests, and states with room for %d", asked-refused, asked, admitted)
	}
	return nil
}

// mark notes that the state of a check, counted from 1, was damaged. It reports whether there is such a check.
func (b *Batch) mark(check int) bool {
	for i := range b.groups {
		g := &b.groups[i]
		if check > len(g.ops) {
			check -= len(g.ops)
			continue
		}
		if check == 0 {
			return false
		}
		g.waiters[0].Damaged = g.ops[check-1].Rule
		return true
	}
	return false
}

// read reads what the script says of the keys of a group, into b.asked.
func (b *Batch) read(g *group, r *Reader) error {
	for len(b.asked) < len(g.ops) {
		b.asked, b.given = append(b.asked, store.Asked{}), append(b.given, store.Check{})
		b.decided = append(b.decided, algorithms.Decision{})
	}
	for i := range g.ops {
		o, a, c := &g.ops[i], &b.asked[i], &b.given[i]
		*c = store.Check{Rule: o.Rule, Cost: o.Cost, Peek: o.Kind == Peek}
		*a = store.Asked{Check: c, Params: o.Prepared.Params, NoBan: b.Careful()}
		if b.countersOnly {
			a.State = r.State()
			r.text(stateSize - 24) // when it began, and the second until which the key lives
			continue
		}
		flags, changes := r.byte(), o.Kind == Adjust || o.Kind == Renew
		if flags > flagChanged|flagDamaged || flags&flagChanged != 0 && !changes {
			return fmt.Errorf("redis answered invalid flags of a check: %d", flags)
		}
		if flags&flagDamaged != 0 {
			g.waiters[0].Damaged = o.Rule
		}
		switch {
		case changes:
			g.waiters[0].Decisions[o.Index] = algorithms.Decision{Allowed: true, Quota: int64(flags & flagChanged)}
			continue
		case o.Rule.Counter() != nil:
			a.State = r.State()
		default:
			a.Given = &b.decided[i]
			if err := r.decision(a.Given, g.ahead(i), o.Cost); err != nil {
				return err
			}
		}
		if o.KeyRules != nil {
			if c.KeyRules = o.KeyRules.KeyRules; !r.keyRules(o.KeyRules, a) {
				return errors.New("redis answered an invalid override of a key")
			}
		}
	}
	return nil
}

// decision reads the script's decision on a check of no Counter, which wants so many units ahead.
func (r *Reader) decision(d *algorithms.Decision, ahead, cost int64) error {
	allowed := r.byte()
	var n [6]int64
	for j := range n {
		n[j] = r.Number()
	}
	quota, remaining, retry, next, reset, delay := n[0], n[1], n[2], n[3], n[4], n[5]
	if allowed > 1 || !possible(allowed == 1, quota, remaining, retry, next, reset) || delay < 0 || delay > maxWait {
		return fmt.Errorf("redis answered an invalid decision: allowed %d; quota, remaining, retry, next, reset and delay %d", allowed, n)
	}
	*d = algorithms.Micros(allowed == 1, quota, remaining, retry, next, reset, delay)
	if ahead == 0 {
		return nil
	}
	units, lasts := r.Number(), r.Number()
	if units < 0 || units > ahead || units > 0 && !d.Allowed || lasts < 0 || lasts > maxAhead {
		return fmt.Errorf("redis answered an invalid charge ahead: %d of %d units for %dus", units, ahead, lasts)
	}
	d.Units, d.Lasts = units, time.Duration(lasts)*time.Microsecond
	if units > 0 && cost > 0 {
		d.Ahead = d.Lasts // the cost and the units are one charge
	}
	return nil
}

// keyRules reads what holds for a key instead of the limit. It reports whether that can be.
func (r *Reader) keyRules(k *KeyRules, a *store.Asked) bool {
	valid := true
	if k.Override != "" {
		switch kind := r.byte(); kind {
		case noOverride, exempt:
			a.Exempt = kind == exempt
		case banned:
			a.Banned = r.Number()
			valid = a.Banned == -1 || 0 < a.Banned && a.Banned <= maxWait
		case limited:
			a.Override = strings.Clone(r.text(int(r.uint16()))) // and not all of the reply, which may be that of many
			a.Params, _, valid = store.OverrideParams(a.Override, a.Params)
		default:
			valid = false
		}
	}
	if k.BanState != "" {
		a.Ban = r.State()
	}
	return valid
}

// possible reports whether a decision can have these numbers.
func possible(allowed bool, quota, remaining, retry, next, reset int64) bool {
	if allowed && (retry < 0 || retry > maxAhead) || !allowed && (retry == 0 || retry < -1 || retry > maxWait) {
		return false
	}
	return 0 <= remaining && remaining <= quota && 0 <= next && next <= reset && reset <= maxWait
}

// decide decides for all requests that share a group, one after the other, and returns how many of them pass. The script has
// charged as many as fit, which has the same result as to charge them one by one, and nothing in a careful call.
func (b *Batch) decide(g *group, now int64) (admitted int) {
	asked := b.asked[:len(g.ops)]
	for _, w := range g.waiters {
		for i := range asked {
			asked[i].Decision = &w.Decisions[w.Ops[w.first+i].Index]
		}
		store.Decide(now, asked)
		if w.Charged(w.Ops[w.first:w.first+len(asked)]) && g.ops[0].Kind == Decide {
			admitted++
		}
		if b.Careful() {
			continue
		}
		for i := range asked {
			asked[i].State = asked[i].Next
			if asked[i].BanLife > 0 {
				asked[i].Ban = asked[i].NextBan
			}
		}
	}
	if admitted == len(g.waiters) && !b.Careful() {
		g.chargeAhead(asked, now)
	}
	return admitted
}

// chargeAhead charges units of Counters ahead, as the script did after all requests passed. The one that wants the most gets
// them.
func (g *group) chargeAhead(asked []store.Asked, now int64) {
	for i := range g.ops {
		o, a, want := &g.ops[i], &asked[i], g.ahead(i)
		if want == 0 || a.Given != nil || a.Exempt || a.Override != "" {
			continue
		}
		at := slices.IndexFunc(g.waiters, func(w waiter) bool { return w.Ops[w.first+i].Ahead == want })
		w := g.waiters[at]
		d, cost := &w.Decisions[w.Ops[w.first+i].Index], o.Cost*int64(len(g.waiters))
		_, units, lasts := o.Rule.Counter().Ahead(a.State, a.Params, now, cost, want)
		d.Units, d.Lasts = units, time.Duration(lasts)*time.Microsecond
	}
}

// Reader reads a reply. Redis and this process both read fixed integers faster than text.
type Reader struct {
	Rest  string
	Short bool // there was less than was read
}

func (r *Reader) byte() byte {
	if len(r.Rest) < 1 {
		r.Short = true
		return 0
	}
	b := r.Rest[0]
	r.Rest = r.Rest[1:]
	return b
}

func (r *Reader) uint16() uint16 { return uint16(r.byte())<<8 | uint16(r.byte()) }

// text reads some bytes.
func (r *Reader) text(n int) string {
	if len(r.Rest) < n {
		r.Short = true
		return ""
	}
	text := r.Rest[:n]
	r.Rest = r.Rest[n:]
	return text
}

// Sized reads a text whose length is in the four bytes before it.
func (r *Reader) Sized() string {
	n := uint32(r.uint16())<<16 | uint32(r.uint16())
	return r.text(int(min(n, math.MaxInt32)))
}

// last reads the number in text that is last, and the space before it.
func (r *Reader) last(most int64) int64 {
	space := strings.LastIndexByte(r.Rest, ' ')
	if space < 0 {
		r.Short = true
		return 0
	}
	n, err := strconv.ParseInt(r.Rest[space+1:], 10, 64)
	if err != nil || n < 0 || n > most {
		r.Short = true
	}
	r.Rest = r.Rest[:space]
	return n
}

// State reads the three numbers of a state.
func (r *Reader) State() algorithms.State {
	return algorithms.State{r.Number(), r.Number(), r.Number()}
}

// Number reads a big-endian integer of eight bytes.
func (r *Reader) Number() int64 {
	if len(r.Rest) < 8 {
		r.Short = true
		return 0
	}
	s := r.Rest[:8]
	r.Rest = r.Rest[8:]
	return int64(uint64(s[0])<<56 | uint64(s[1])<<48 | uint64(s[2])<<40 | uint64(s[3])<<32 |
		uint64(s[4])<<24 | uint64(s[5])<<16 | uint64(s[6])<<8 | uint64(s[7]))
}
