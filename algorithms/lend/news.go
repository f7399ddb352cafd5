package lend

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// news is the last answer, and what it says to requests that the loan does not pay for.
type news struct {
	Answer
	at    Moment
	mode  mode
	from  int64         // while refusing, the costs that are refused: this and above; 0: none
	until time.Duration // as long as the mode holds: refusing and scarce
}

// say enters a mode.
func (n *news) say(m mode, from int64, until time.Duration) { n.mode, n.from, n.until = m, from, until }

// hear takes what an answer says.
func (b *Borrower) hear(now Moment, answer Answer) {
	b.news.at, b.news.Answer = now, answer
	if b.ask.Cost > 0 || b.ask.Number == 1 {
		b.noteCharged(answer)
	}
	switch pause := time.Duration(answer.Pause) * time.Microsecond; {
	case !answer.Allowed:
		b.refuse(now, answer)
	case answer.Overruled:
		b.news.say(scarce, 0, now.Mono+min(b.period, longestRefusal))
	case answer.Held > 0 || b.ask.Want == 0:
		b.news.say(lent, 0, 0)
	case pause > 0 && pause < b.period:
		b.news.say(refusing, max(1, b.ask.Cost), now.Mono+pause)
	default:
		b.news.say(scarce, 0, now.Mono+b.period/alonePart)
	}
}

// refuse notes how long a refusal holds: until its wait is over, if that is certain, and at
// least until there is something to lend, but no longer than a period.
func (b *Borrower) refuse(now Moment, answer Answer) {
	wait := min(answer.RetryAfter, longestRefusal)
	if answer.Others > 0 || b.ask.Live > 0 { // it may come back
		wait = min(wait, b.period)
	}
	if pause := time.Duration(answer.Pause) * time.Microsecond; pause > wait {
		wait = max(wait, min(pause, b.period))
	}
	from := b.ask.Cost
	if answer.Banned { // whatever the cost
		wait, from = min(answer.RetryAfter, longestRefusal), 1
	}
	b.news.say(refusing, from, now.Mono+wait)
}

// Banned reports whether the last answer was that the key is banned.
func (b *Borrower) Banned() bool { return b.news.Banned }

// refuses reports whether a cost is refused without an ask.
func (b *Borrower) refuses(now Moment, cost int64) bool {
	return b.news.mode == refusing && b.news.from > 0 && cost >= b.news.from && now.Mono < b.news.until && b.news.covers(cost)
}

// covers reports whether the wait of a cost that is refused is known. That of a larger cost than the one that was refused may be
// longer, unless it has none because it is above the limit, or all of the limit comes back at once.
func (n *news) covers(cost int64) bool {
	return cost == n.from || n.Banned || cost > n.Quota || !n.Allowed && n.RetryAfter == n.ResetAfter
}

// RefusedAlone tells that the store has refused a request that asked for itself, with so much left: the next one
// begins an ask.
func (b *Borrower) RefusedAlone(remaining int64) {
	b.news.Remaining = min(b.news.Remaining, remaining)
	if b.news.mode != refusing {
		b.news.say(refusing, 0, 0)
	}
}

// At returns the time on the store's clock, as far as it is known, in microseconds since 1970. Unless that clock goes
// back, it is too late by a microsecond at most: what is spent just after the store has charged something by itself is spent later
// than that, so that a refund tells them apart.
func (b *Borrower) At(now Moment) int64 {
	at := b.news.At + (now.Mono - b.news.at.Mono).Microseconds()
	if charged := b.charged.until; at <= charged && charged-at < justBefore {
		at = charged + 1
	}
	return at
}

// Allowed returns the decision on a cost that was reserved.
func (b *Borrower) Allowed(now Moment) algorithms.Decision {
	d := b.told(now)
	d.Allowed, d.RetryAfter = true, 0
	if d.Remaining = b.left(now); d.Remaining < d.Quota {
		d.NextAfter = max(d.NextAfter, time.Microsecond) // the next answer says what has come back since
		d.ResetAfter = max(d.ResetAfter, d.NextAfter)
	}
	return d
}

// left returns what is left of the limit: what was free at the last answer, and what is held and not reserved. What
// others have spent since is not known.
func (b *Borrower) left(now Moment) int64 { return min(b.news.Quota, b.news.Remaining+b.Spare(now)) }

// Spare returns what no request has reserved of what is held at now.
func (b *Borrower) Spare(now Moment) int64 { return max(0, b.Live(now)-b.loan.reserved) }

// Refused returns the decision on a cost that is refused without an ask.
func (b *Borrower) Refused(now Moment, cost int64) algorithms.Decision {
	d := b.told(now)
	d.Allowed, d.Remaining, d.BanBegins = false, 0, false
	switch {
	case cost > d.Quota && !d.Banned:
		d.RetryAfter = algorithms.Never
	case d.RetryAfter != algorithms.Never:
		d.RetryAfter = max(d.RetryAfter, b.news.until-now.Mono)
	}
	d.NextAfter = max(d.NextAfter, min(d.RetryAfter, b.news.until-now.Mono))
	d.ResetAfter = max(d.ResetAfter, d.NextAfter)
	return d
}

// told returns the last decision of the store as of now.
func (b *Borrower) told(now Moment) algorithms.Decision {
	d, elapsed := b.news.Decision, now.Mono-b.news.at.Mono
	if d.RetryAfter != algorithms.Never {
		d.RetryAfter = max(0, d.RetryAfter-elapsed)
	}
	d.NextAfter, d.ResetAfter = max(0, d.NextAfter-elapsed), max(0, d.ResetAfter-elapsed)
	d.At, d.Ahead, d.Delay = b.At(now), 0, 0
	return d
}
