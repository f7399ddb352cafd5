package protocol

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// The flags of a decision.
const (
	flagAllowed   = 1
	flagDamaged   = 2
	flagExempt    = 4
	flagBanned    = 8
	flagBanBegins = 16
	flagOverride  = 32

	allFlags = 63
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
	r := reader{rest: reply}
	if err := b.readChecks(&r); err != nil {
		return err
	}
	if r.short || r.rest != "" {
		return fmt.Errorf("redis answered an invalid reply of %d bytes to %d checks", len(reply), b.checks)
	}
	if b.Careful() {
		b.failUncharged()
	}
	return nil
}

// readChecks reads the reply from its end: the time, and how many of the requests did not pass whose
// decisions are to be computed here. Before these are the checks.
func (b *Batch) readChecks(r *reader) error {
	micros := r.last(maxTime)
	now, err := valid(r.last(maxTime/1_000_000)*1_000_000 + micros)
	if err != nil {
		return err
	}
	refused, asked, admitted := int(r.last(math.MaxUint16)), 0, 0
	for i := range b.groups {
		if g := &b.groups[i]; b.replays(g) {
			g.states = r.text(stateSize * len(g.ops))
		} else if err := g.readDecisions(r, now); err != nil {
			return err
		}
	}
	for !r.short && len(r.rest) > 0 {
		if !b.mark(int(r.uint16())) {
			r.short = true
		}
	}
	for i := range b.groups {
		if g := &b.groups[i]; b.replays(g) && !r.short {
			asked += len(g.waiters)
			admitted += g.replay(now, b.Careful())
		}
	}
	if !r.short && !b.Careful() && asked-refused != admitted {
		return fmt.Errorf("redis answered room for %d of %d requests, and states with room for %d", asked-refused, asked, admitted)
	}
	return nil
}

// replays reports whether the decisions of a group are computed here, from the states before.
func (b *Batch) replays(g *group) bool { return b.countersOnly || len(g.waiters) > 1 }

// mark notes that the state of a check, counted from 1, was damaged. It reports whether the decision on such a check is
// computed here.
func (b *Batch) mark(check int) bool {
	for i := range b.groups {
		g := &b.groups[i]
		if check > len(g.ops) {
			check -= len(g.ops)
			continue
		}
		if check == 0 || !b.replays(g) {
			return false
		}
		g.waiters[0].Damaged = g.ops[check-1].Rule
		return true
	}
	return false
}

// valid checks a time that Redis answered.
func valid(now int64) (int64, error) {
	if now < 0 || now > maxTime {
		return 0, fmt.Errorf("redis answered an invalid time: %d microseconds since 1970", now)
	}
	return now, nil
}

// readDecisions reads the decisions that the script has made for the one request that waits.
func (g *group) readDecisions(r *reader, now int64) error {
	w := &g.waiters[0]
	for i := range g.ops {
		flags := r.byte()
		var n [6]int64
		for j := range n {
			n[j] = r.number()
		}
		override := ""
		if flags&flagOverride != 0 {
			override = strings.Clone(r.text(int(r.uint16()))) // and not all of the reply, which may be that of many
		}
		units, lasts := int64(0), int64(0)
		if g.ahead(i) > 0 {
			units, lasts = r.number(), r.number()
		}
		quota, remaining, retry, next, reset, delay := n[0], n[1], n[2], n[3], n[4], n[5]
		allowed := flags&flagAllowed != 0
		if !g.ops[i].mayHave(flags) || flags&flagOverride != 0 && override == "" ||
			!possible(allowed, quota, remaining, retry, next, reset) || delay < 0 || delay > maxWait {
			return fmt.Errorf("redis answered an invalid decision: flags %d; quota, remaining, retry, next, reset and delay %d", flags, n)
		}
		if units < 0 || units > g.ops[i].Ahead || units > 0 && !allowed || lasts < 0 || lasts > maxAhead {
			return fmt.Errorf("redis answered an invalid charge ahead: %d of %d units for %dus", units, g.ops[i].Ahead, lasts)
		}
		w.noteFlags(flags, &g.ops[i])
		d := algorithms.Micros(allowed, quota, remaining, retry, next, reset, delay)
		d.At = now
		d.Exempt, d.Banned = flags&flagExempt != 0, flags&flagBanned != 0
		d.BanBegins, d.Override = flags&flagBanBegins != 0, override
		d.Units, d.Lasts = units, time.Duration(lasts)*time.Microsecond
		if _, ok := g.ops[i].Rule.Algorithm().(algorithms.Recorder); ok && units > 0 && g.ops[i].Cost > 0 {
			d.Ahead = d.Lasts // the cost and the units are one charge
		}
		w.Decisions[g.ops[i].Index] = d
	}
	return nil
}

// possible reports whether a decision can have these numbers.
func possible(allowed bool, quota, remaining, retry, next, reset int64) bool {
	if allowed && (retry < 0 || retry > maxAhead) || !allowed && (retry == 0 || retry < -1 || retry > maxWait) {
		return false
	}
	return 0 <= remaining && remaining <= quota && 0 <= next && next <= reset && reset <= maxWait
}

// mayHave reports whether the flags are ones that the script has for the operation.
func (o *Op) mayHave(flags byte) bool {
	if o.KeyRules == nil {
		return flags <= flagAllowed|flagDamaged
	}
	allowed, banned := flags&flagAllowed != 0, flags&flagBanned != 0
	return flags <= allFlags && !(allowed && banned) &&
		(allowed || flags&flagExempt == 0) && (banned || flags&flagBanBegins == 0)
}

// replay computes the decisions for all requests that share a group, and returns how many of them
// pass. The script has charged as many of them as fit, which has the same result as to charge them
// one after the other, and nothing at all in a careful call. Its reply has the states before, and the Go algorithms decide
// as their Lua ports would have.
func (g *group) replay(now int64, careful bool) (admitted int) {
	var room [4]algorithms.State
	states := append(room[:0], make([]algorithms.State, len(g.ops))...)
	r := reader{rest: g.states}
	for i := range states {
		states[i] = algorithms.State{r.number(), r.number(), r.number()}
		r.text(12) // when it began, and the second until which the key lives
	}
	for _, w := range g.waiters {
		if g.decide(w, states, now, careful) {
			admitted++
		}
	}
	if admitted == len(g.waiters) && !careful {
		g.chargeAhead(states, now)
	}
	return admitted
}

// chargeAhead charges units ahead, as the script did after all requests passed. The one that wants the most gets them.
func (g *group) chargeAhead(states []algorithms.State, now int64) {
	for i := range g.ops {
		o, want := &g.ops[i], g.ahead(i)
		if want == 0 {
			continue
		}
		at := slices.IndexFunc(g.waiters, func(w waiter) bool { return w.Ops[w.first+i].Ahead == want })
		w := g.waiters[at]
		d, cost := &w.Decisions[w.Ops[w.first+i].Index], o.Cost*int64(len(g.waiters))
		_, units, lasts := o.Rule.Algorithm().(algorithms.Prepaid).Ahead(states[i], o.Prepared.Params, now, cost, want)
		d.Units, d.Lasts = units, time.Duration(lasts)*time.Microsecond
	}
}

// decide does the work of the script for one request: all checks are charged or none. A careful call charges none.
func (g *group) decide(w waiter, states []algorithms.State, now int64, careful bool) bool {
	var room [4]algorithms.State
	next := append(room[:0], states...)
	pass := true
	take := func(i int, cost int64) *algorithms.Decision {
		counter := g.ops[i].Rule.Algorithm().(algorithms.Counter)
		d := &w.Decisions[w.Ops[w.first+i].Index]
		next[i], *d = counter.Take(states[i], g.ops[i].Prepared.Params, now, cost)
		d.At = now
		return d
	}
	for i := range g.ops {
		pass = take(i, g.ops[i].Cost).Allowed && pass
	}
	if pass {
		if !careful {
			copy(states, next)
		}
		return true
	}
	for i := range g.ops {
		if w.Decisions[w.Ops[w.first+i].Index].Allowed {
			take(i, 0)
		}
	}
	return false
}

// noteFlags notes whether the state of an operation was damaged.
func (w *waiter) noteFlags(flags byte, o *Op) {
	if flags&flagDamaged != 0 {
		w.Damaged = o.Rule
	}
}

// reader reads a reply. Redis and this process both read fixed integers faster than text.
type reader struct {
	rest  string
	short bool // there was less than was read
}

func (r *reader) byte() byte {
	if len(r.rest) < 1 {
		r.short = true
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) uint16() uint16 { return uint16(r.byte())<<8 | uint16(r.byte()) }

// text reads some bytes.
func (r *reader) text(n int) string {
	if len(r.rest) < n {
		r.short = true
		return ""
	}
	text := r.rest[:n]
	r.rest = r.rest[n:]
	return text
}

// last reads the number in text that is last, and the space before it.
func (r *reader) last(most int64) int64 {
	space := strings.LastIndexByte(r.rest, ' ')
	if space < 0 {
		r.short = true
		return 0
	}
	n, err := strconv.ParseInt(r.rest[space+1:], 10, 64)
	if err != nil || n < 0 || n > most {
		r.short = true
	}
	r.rest = r.rest[:space]
	return n
}

// number reads a big-endian integer of eight bytes.
func (r *reader) number() int64 {
	if len(r.rest) < 8 {
		r.short = true
		return 0
	}
	s := r.rest[:8]
	r.rest = r.rest[8:]
	return int64(uint64(s[0])<<56 | uint64(s[1])<<48 | uint64(s[2])<<40 | uint64(s[3])<<32 |
		uint64(s[4])<<24 | uint64(s[5])<<16 | uint64(s[6])<<8 | uint64(s[7]))
}
