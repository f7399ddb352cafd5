package store

import "github.com/seed-161337e5/caddyratelimit/algorithms"

// Asked is a check with what a store knows of its key. [Decide] fills in the decision, and what is to be kept.
type Asked struct {
	Check    *Check
	Decision *algorithms.Decision

	// Exempt says that the key is exempt, Banned for how many microseconds more it is banned by an override (negative:
	// without an end), and Override that the limit of one holds, in the form of [algorithms.Decision].Override.
	Exempt   bool
	Banned   int64
	Override string

	// Params are those of the limit that holds. It counts in State if the algorithm is a Counter, in Log if it is a
	// Recorder, and in Leases if it is a Leaser. Given is what the limit says if the store's server has decided that: if
	// the cost passes and is not charged, for a cost of 0.
	Params algorithms.Params
	State  algorithms.State
	Log    *algorithms.Log
	Leases *algorithms.Leases
	Given  *algorithms.Decision

	// Ban is the state of the bans that follow refusals. NoBan says that none can be kept.
	Ban   algorithms.State
	NoBan bool

	// Charged says that the cost is to be charged. Next is the state of a Counter with the charge, or else as it was.
	Charged bool
	Next    algorithms.State

	// BanLife is for how many microseconds NextBan is to be kept instead of Ban; 0 if that has not changed.
	NextBan algorithms.State
	BanLife int64
}

// Decide decides the checks of a call at a time in microseconds since 1970, as [Store].Take describes it. It reports whether
// all pass that depend on each other.
func Decide(now int64, asked []Asked) (pass bool) {
	pass = true
	for i := range asked {
		a := &asked[i]
		a.decide(now)
		pass = pass && (a.Decision.Allowed || a.Check.Alone())
	}
	for i := range asked {
		a := &asked[i]
		switch c, d := a.Check, a.Decision; {
		case !d.Allowed || d.Exempt:
		case c.Peek, !pass && !c.Independent:
			// The check would pass but is not charged, so its decision must not include the charge.
			delay := d.Delay
			if a.limit(now, 0); c.Peek {
				d.Delay = delay
			}
			continue
		case c.Cost > 0:
			a.Charged = true
			continue
		}
		a.Next = a.State
	}
	return pass
}

// decide decides a check by what holds for its key instead of the limit, and then by the limit.
func (a *Asked) decide(now int64) {
	a.Charged, a.BanLife = false, 0
	d := a.Decision
	if a.Exempt {
		*d = algorithms.Decision{Allowed: true, Exempt: true, At: now}
		return
	}
	a.limit(now, a.Check.Cost)
	if a.Check.KeyRules == nil {
		return
	}
	left, ban := a.Banned, a.Check.KeyRules.Ban
	if ban != nil && left == 0 {
		if left = ban.Left(a.Ban, now); left == 0 && !d.Allowed && !a.Check.Peek && !a.NoBan {
			a.NextBan, left, a.BanLife = ban.Refused(a.Ban, now)
			d.BanBegins = left > 0
		}
	}
	if left == 0 {
		return
	}
	if d.Allowed {
		a.limit(now, 0)
	}
	*d = d.Ban(left)
}

// limit decides a cost by the limit alone.
func (a *Asked) limit(now, cost int64) {
	if counter := a.Check.Rule.Counter(); counter != nil {
		a.Next, *a.Decision = counter.Take(a.State, a.Params, now, cost)
	} else {
		a.other(now, cost)
	}
	a.Decision.Override, a.Decision.At = a.Override, now
}

// other is limit for the algorithms that are no Counters. It is apart so that the others do not need its stack: a request
// whose stack has to grow pays for that.
func (a *Asked) other(now, cost int64) {
	if a.Given != nil {
		*a.Decision = *a.Given
		return
	}
	switch algorithm := a.Check.Rule.Algorithm().(type) {
	case algorithms.Recorder:
		*a.Decision = algorithm.Decide(a.Log, a.Params, now, cost)
	case algorithms.Leaser:
		*a.Decision = algorithm.Decide(a.Leases, a.Params, now, cost)
	}
}

// Overridden notes the override that holds for the key for so many microseconds more, negative if it has no end. It reports
// whether the override has a limit, which counts in other states then.
func (a *Asked) Overridden(o *PreparedOverride, left int64) bool {
	switch {
	case o.Kind == KindExempt:
		a.Exempt = true
	case o.Kind == KindBanned:
		a.Banned = left
	case o.ReplacesLimit(a.Check.Rule):
		a.Params, a.Override = o.Params(a.Params), o.encoded
		return true
	}
	return false
}
