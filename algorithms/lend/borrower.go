package lend

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// Moment is a time on both clocks of a machine. The monotonic clock may stand still while the
// machine is suspended, and the wall clock can be set.
type Moment struct{ Mono, Wall time.Duration }

// plus returns a later moment.
func (m Moment) plus(d time.Duration) Moment { return Moment{m.Mono + d, m.Wall + d} }

// Drift is how much faster or slower the clock of a machine may run than that of the store:
// by 1/Drift.
const Drift = 1000

// Borrower is what a process holds of one key. It has no lock: its caller has one.
//
// What it holds lasts until the loan ends by either clock of the machine, counted from when the
// ask was sent. The store counts from when it answers, which is later, so the borrower always
// stops first.
type Borrower struct {
	id          uint64
	period      time.Duration // how often it asks at most
	most        time.Duration // the longest time between two asks
	span        time.Duration // the time between asks, as often as requests come now
	number      int64         // of the last ask
	spent       int64         // since the borrower exists
	pending     int64         // what requests have reserved, and neither spent nor given up yet
	limit       int64         // what may be spent, since the borrower exists
	from, until Moment

	asks   bool // whether an ask is under way
	asked  Ask
	sent   Moment
	doubt  time.Duration // until then the store may have lent something that the borrower does not know
	owes   bool          // what the answer lends is given up: see Owes
	gives  bool          // what was held was given up, and what requests do not spend of the rest is, until something is lent
	given  int64         // how much requests have given up so since the last ask
	demand demand

	// Of the last answer.
	answered     Moment
	answer       Answer
	refusesFrom  int64         // costs of this and above are refused; 0: none are
	refusesUntil time.Duration // until then
	aloneUntil   time.Duration // until then requests ask for themselves
	scarce       bool          // it was a refusal
	sampled      int64         // charges up to this time, as At tells it, are or may be the store's
	reported     int64         // the same before the last ask
	latest       int64         // what At told before the answer, at most: it goes back if an answer was slow
}

// NewBorrower returns a borrower with a random number that no other has. It asks once in a period,
// and when it has spent what it held. If requests come rarely, it asks less often, up to the longest
// time: see [Longest].
func NewBorrower(id uint64, period, longest time.Duration) *Borrower {
	return &Borrower{id: id, period: period, most: longest, span: longest}
}

const (
	// leasePeriods is how many times the time between asks a loan lasts if it is not renewed.
	leasePeriods = 3

	// stretch is how many times longer than a period the time between asks may be.
	stretch = 200

	// enough is how many requests should come between two asks, and worth how many must: an ask
	// costs about as much as three requests that ask for themselves.
	enough = 64
	worth  = 3

	// again is after how many of the longest times a loan that was not worth it is tried again.
	again = 8

	// alonePart is for which part of a period requests ask for themselves after an ask that found
	// too little to lend.
	alonePart = 8

	// longestRefusal bounds how long a refusal is remembered.
	longestRefusal = time.Second
)

// ID returns the borrower's number.
func (b *Borrower) ID() uint64 { return b.id }

// lasts reports whether the loan lasts for a while longer.
func (b *Borrower) lasts(now Moment, while time.Duration) bool {
	return now.Mono+while < b.until.Mono && now.Wall+while < b.until.Wall && now.Wall >= b.from.Wall
}

// Live returns what may still be spent at now.
func (b *Borrower) Live(now Moment) int64 {
	if !b.lasts(now, 0) {
		return 0
	}
	return b.limit - b.spent
}

// Holds reports whether anything may be held at now, whether the borrower knows it or not.
func (b *Borrower) Holds(now Moment) bool { return b.Live(now) > 0 || now.Mono < b.doubt }

// Next is what a request does next.
type Next uint8

const (
	Reserved Next = iota // its cost is reserved: it calls Spend or Cancel, best within a while
	Refused              // it is refused
	Alone                // it asks the store for itself, because too little is left to lend
	Wait                 // it waits for the end of the ask that is under way, and begins again
	Begin                // it asks the store with Begin
)

// Next returns what a request does that spends what it reserves within a while.
func (b *Borrower) Next(now Moment, cost int64, while time.Duration) Next {
	switch {
	case b.Reserve(now, cost, while):
		return Reserved
	case b.refuses(now, cost):
		return Refused
	case now.Mono < b.aloneUntil:
		return Alone
	case b.asks:
		return Wait
	}
	return Begin
}

// Reserve reserves a cost, and reports whether it did.
func (b *Borrower) Reserve(now Moment, cost int64, while time.Duration) bool {
	if !b.lasts(now, while) || cost > b.limit-b.spent-b.pending {
		return false
	}
	b.pending += cost
	return true
}

// Came reports some requests that have come since a time, before the borrower was made.
func (b *Borrower) Came(since time.Duration, requests, cost int64) {
	b.demand.since, b.demand.requests, b.demand.cost = since, requests, cost
}

// Want counts a request's demand, and reports whether to borrow.
func (b *Borrower) Want(now Moment, cost int64) bool {
	b.demand.add(now.Mono, cost, b.span)
	return b.Borrows(now) || b.refuses(now, cost)
}

// Borrows reports whether to borrow, because that is worth the asks, or something is held or asked for
// anyway.
func (b *Borrower) Borrows(now Moment) bool {
	return b.asks || b.pending > 0 || b.Holds(now) || b.pays(now)
}

// pays reports whether enough requests come between two asks.
func (b *Borrower) pays(now Moment) bool {
	span := b.span
	if now.Mono-b.sent.Mono > again*b.most {
		span = b.most
	}
	return b.demand.come(now.Mono, b.period, b.span, span) >= worth
}

// Spend spends what was reserved, and reports whether it did: if the loan has ended meanwhile, what
// was reserved is given up, because the store has counted it as spent by then.
func (b *Borrower) Spend(now Moment, cost int64) bool {
	b.pending -= cost
	if !b.lasts(now, 0) {
		b.unused(cost)
		return false
	}
	b.spent += cost
	return true
}

// Cancel gives up what was reserved.
func (b *Borrower) Cancel(cost int64) {
	b.pending -= cost
	b.unused(cost)
}

// Due reports whether it is time to renew the loan, or to return it because no request came. After
// an ask that was given up, what it may have been lent is asked for or returned too: otherwise all
// of it would count as spent.
func (b *Borrower) Due(now Moment) (renew, giveBack bool) {
	unknown := now.Mono < b.doubt
	if b.asks || !unknown && (b.limit-b.spent <= b.pending || !b.lasts(now, 0)) {
		return false, false
	}
	if b.demand.idle(now.Mono, b.span) {
		return false, true
	}
	due := unknown || now.Mono-b.sent.Mono >= b.span
	return due && b.pays(now), due && !b.pays(now)
}

// Look returns when to ask Due and Gone again at the latest, if no ask ends before.
func (b *Borrower) Look(now Moment) time.Duration {
	at := now.Mono + b.most
	if now.Mono < b.doubt {
		at = now.Mono + b.period/4
	} else if b.limit > b.spent && b.lasts(now, 0) {
		at = min(b.sent.Mono, b.demand.last) + b.span
	}
	return max(at, now.Mono+b.period/4)
}

// Asks reports whether an ask is under way.
func (b *Borrower) Asks() bool { return b.asks }

// Begin returns an ask for a request that costs more than the borrower holds. Until the answer
// has come, nothing can be reserved.
func (b *Borrower) Begin(now Moment, cost int64) Ask {
	return b.begin(now, cost, b.want(now), b.pending)
}

// want returns what to hold after an ask, and sets the time until the next one.
func (b *Borrower) want(now Moment) int64 {
	b.demand.roll(now.Mono, b.span)
	b.span = b.demand.next(now.Mono, b.period, b.span, b.most)
	return b.demand.want(now.Mono, b.span)
}

// Borrow returns an ask like Begin, for a request that may yet be refused for another reason.
// The cost is lent, and nothing else if no other requests came.
func (b *Borrower) Borrow(now Moment, cost int64) Ask {
	want := b.want(now)
	if want <= 2*cost {
		want = 0
	}
	b.begin(now, cost, want, b.pending)
	b.asked.Borrows = true
	return b.asked
}

// Renew returns an ask that no request waits for. What the borrower holds can be spent
// meanwhile.
func (b *Borrower) Renew(now Moment) Ask {
	return b.begin(now, 0, b.want(now), max(b.pending, b.Live(now)))
}

// Return returns an ask that gives back what is held, as far as no request has reserved it.
func (b *Borrower) Return(now Moment) Ask { return b.begin(now, 0, 0, b.pending) }

// begin makes an ask.
func (b *Borrower) begin(now Moment, cost, want, live int64) Ask {
	b.number++
	b.asks, b.sent, b.owes, b.given = true, now, false, 0
	b.limit = b.spent + live // whatever the clocks say later
	b.reported, b.sampled = b.sampled, max(b.sampled, b.latest, b.At(now))
	b.asked = Ask{
		Borrower: b.id, Number: b.number, Spent: b.spent, Live: live, Want: want,
		Lease: (leasePeriods * b.span).Microseconds(), Scarce: b.scarce, Cost: cost,
	}
	if b.span > b.period {
		b.asked.Brief = (leasePeriods * b.period).Microseconds()
	}
	return b.asked
}

// End takes the answer to an ask, and reports whether that was still under way. It does nothing if
// the ask was given up. If a cost was lent and not charged, the request may reserve it now, whatever else is given up.
func (b *Borrower) End(now Moment, number int64, answer Answer, reserve int64) bool {
	if !b.asks || number != b.number {
		return false
	}
	b.asks, b.doubt = false, 0
	lease := time.Duration(answer.Lease) * time.Microsecond
	b.from, b.until = b.sent, b.sent.plus(lease-lease/Drift-2*time.Microsecond)
	if answer.Held > 0 {
		b.span = min(b.span, max(b.period, lease/leasePeriods))
	}
	b.limit, b.gives = b.asked.Spent+answer.Held-b.given, b.gives && answer.Held <= b.asked.Live
	if b.owes {
		b.giveUp(reserve)
	}
	b.latest = max(b.latest, b.At(now))
	b.answered, b.answer = now, answer
	if b.asked.Cost > 0 || b.number == 1 {
		b.charged(answer)
	}
	b.scarce = !answer.Allowed
	b.aloneUntil = 0
	b.refusesFrom = 0
	switch pause := time.Duration(answer.Pause) * time.Microsecond; {
	case b.scarce:
		b.refuse(now, answer)
	case answer.Held > 0 || b.asked.Want == 0:
	case pause > 0 && pause < b.period:
		b.scarce, b.refusesFrom, b.refusesUntil = true, max(1, b.asked.Cost), now.Mono+pause
	default:
		b.aloneUntil = now.Mono + b.period/alonePart
	}
	return true
}

// charged notes up to which time the store may have charged requests by itself, so that what it has
// charged is not taken back from what was spent since. It comes back by itself meanwhile.
func (b *Borrower) charged(answer Answer) {
	at := answer.At
	if b.asked.Borrows && answer.Held > 0 { // the cost was lent
		at--
	}
	b.sampled = max(b.sampled, at)
}

// ChargedAlone tells that the store has charged a request that asked for itself.
func (b *Borrower) ChargedAlone(at int64) { b.sampled = max(b.sampled, at) }

// refuse notes how long a refusal holds: until its wait is over, if that is certain, and at
// least until there is something to lend, but no longer than a period.
func (b *Borrower) refuse(now Moment, answer Answer) {
	wait := min(answer.RetryAfter, longestRefusal)
	if answer.Others > 0 || b.asked.Live > 0 { // it may come back
		wait = min(wait, b.period)
	}
	if pause := time.Duration(answer.Pause) * time.Microsecond; pause > wait {
		wait = max(wait, min(pause, b.period))
	}
	b.refusesFrom, b.refusesUntil = b.asked.Cost, now.Mono+wait
}

// Fail gives up an ask, and reports whether it was still under way. It may be carried out, or not,
// or later.
func (b *Borrower) Fail(number int64) bool {
	if !b.asks || number != b.number {
		return false
	}
	b.asks = false
	b.doubt = max(b.doubt, b.until.Mono)
	if b.asked.Want > 0 || b.asked.Borrows {
		b.doubt = b.sent.Mono + time.Duration(b.asked.Lease)*time.Microsecond
	}
	return true
}

// refuses reports whether a cost is refused without an ask.
func (b *Borrower) refuses(now Moment, cost int64) bool {
	return b.refusesFrom > 0 && cost >= b.refusesFrom && now.Mono < b.refusesUntil
}

// RefusedAlone tells that the store has refused a request that asked for itself: the next one
// begins an ask.
func (b *Borrower) RefusedAlone() { b.aloneUntil, b.scarce = 0, true }

// At returns the time on the store's clock, as far as it is known, in microseconds since 1970:
// it is never too late.
func (b *Borrower) At(now Moment) int64 {
	return b.answer.At + (now.Mono - b.answered.Mono).Microseconds()
}

// Allowed returns the decision on a cost that was reserved. What remains is what the borrower still
// holds, and no more: others may have used since what was free when the store last answered.
func (b *Borrower) Allowed(now Moment) algorithms.Decision {
	d := b.told(now)
	d.Allowed, d.RetryAfter = true, 0
	d.Remaining, d.Elsewhere = min(d.Quota, b.Spare(now)), b.answer.Remaining
	return d
}

// Spare returns what no request has reserved of what is held at now.
func (b *Borrower) Spare(now Moment) int64 { return max(0, b.Live(now)-b.pending) }

// Refused returns the decision on a cost that is refused without an ask.
func (b *Borrower) Refused(now Moment, cost int64) algorithms.Decision {
	d := b.told(now)
	d.Allowed, d.Remaining = false, 0
	switch {
	case cost > d.Quota:
		d.RetryAfter = algorithms.Never
	case d.RetryAfter != algorithms.Never:
		d.RetryAfter = max(d.RetryAfter, b.refusesUntil-now.Mono)
	}
	d.NextAfter = max(d.NextAfter, min(d.RetryAfter, b.refusesUntil-now.Mono))
	d.ResetAfter = max(d.ResetAfter, d.NextAfter)
	return d
}

// told returns the last decision of the store as of now.
func (b *Borrower) told(now Moment) algorithms.Decision {
	d, elapsed := b.answer.Decision, now.Mono-b.answered.Mono
	if d.RetryAfter != algorithms.Never {
		d.RetryAfter = max(0, d.RetryAfter-elapsed)
	}
	d.NextAfter, d.ResetAfter = max(0, d.NextAfter-elapsed), max(0, d.ResetAfter-elapsed)
	d.At, d.Ahead, d.Delay = b.At(now), 0, 0
	return d
}

// Gone reports whether nothing is held or refused any more, and no request has come for a while.
func (b *Borrower) Gone(now Moment) bool {
	return !b.asks && b.pending == 0 && !b.lasts(now, 0) && now.Mono >= max(b.refusesUntil, b.doubt) && b.demand.idle(now.Mono, b.most)
}
