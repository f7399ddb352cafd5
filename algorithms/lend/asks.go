package lend

import "time"

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

// ask is the last ask, and what is not known of it.
type ask struct {
	Ask
	underWay bool
	reported int64 // what asks before it have told as spent
	sent     Moment
	void     bool          // what the answer lends is given up: see Owes
	doubt    time.Duration // until then the store may have lent something that the borrower does not know
}

// Due reports whether it is time to renew the loan, or to return it because no request came. After
// an ask that was given up, what it may have been lent is asked for or returned too: otherwise all
// of it would count as spent.
func (b *Borrower) Due(now Moment) (renew, giveBack bool) {
	unknown := now.Mono < b.ask.doubt
	if b.ask.underWay || !unknown && (b.loan.limit-b.loan.spent <= b.loan.reserved || !b.lasts(now, 0)) {
		return false, false
	}
	if b.demand.idle(now.Mono, b.span) {
		return false, true
	}
	due := unknown || now.Mono-b.ask.sent.Mono >= b.span
	return due && b.pays(now), due && !b.pays(now)
}

// Look returns when to ask Due and Gone again at the latest, if no ask ends before.
func (b *Borrower) Look(now Moment) time.Duration {
	at := now.Mono + b.most
	if now.Mono < b.ask.doubt {
		at = now.Mono + b.period/4
	} else if b.loan.limit > b.loan.spent && b.lasts(now, 0) {
		at = min(b.ask.sent.Mono, b.demand.last) + b.span
	}
	return max(at, now.Mono+b.period/4)
}

// Ends reports whether something is held, in a loan that ends before what is due is looked at again: see [Borrower.Look].
func (b *Borrower) Ends(now Moment) bool { return b.Live(now) > 0 && !b.lasts(now, b.period/2) }

// Asks reports whether an ask is under way.
func (b *Borrower) Asks() bool { return b.ask.underWay }

// Alone returns an ask of a request that asks for itself.
func (b *Borrower) Alone(cost int64) Ask { return Ask{Borrower: b.id, Cost: cost} }

// Begin returns an ask for a request that costs more than the borrower holds. Until the answer
// has come, nothing can be reserved.
func (b *Borrower) Begin(now Moment, cost int64) Ask {
	return b.begin(now, cost, b.want(now), b.loan.reserved)
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
	b.begin(now, cost, want, b.loan.reserved)
	b.ask.Borrows = true
	return b.ask.Ask
}

// Renew returns an ask that no request waits for. What the borrower holds can be spent
// meanwhile.
func (b *Borrower) Renew(now Moment) Ask {
	return b.begin(now, 0, b.want(now), max(b.loan.reserved, b.Live(now)))
}

// Return returns an ask that gives back what is held, as far as no request has reserved it.
func (b *Borrower) Return(now Moment) Ask { return b.begin(now, 0, 0, b.loan.reserved) }

// begin makes an ask.
func (b *Borrower) begin(now Moment, cost, want, live int64) Ask {
	b.ask.Number++
	b.ask.underWay, b.ask.sent, b.ask.void, b.loan.returned = true, now, false, 0
	b.loan.limit = b.loan.spent + live // whatever the clocks say later
	b.charged.before, b.charged.asked = b.charged.until, max(b.charged.until, b.charged.latest, b.At(now))
	b.ask.reported = b.ask.Spent
	b.ask.Ask = Ask{
		Borrower: b.id, Number: b.ask.Number, Spent: b.loan.spent, Live: live, Want: want,
		Lease: (leasePeriods * b.span).Microseconds(), Scarce: b.news.mode == refusing, Cost: cost,
	}
	if b.span > b.period {
		b.ask.Brief = (leasePeriods * b.period).Microseconds()
	}
	return b.ask.Ask
}

// End takes the answer to an ask, and reports whether that was still under way. It does nothing if
// the ask was given up. If a cost was lent and not charged, the request may reserve it now, whatever else is given up.
func (b *Borrower) End(now Moment, number int64, answer Answer, reserve int64) bool {
	if !b.ask.underWay || number != b.ask.Number {
		return false
	}
	b.settle(true)
	b.ask.doubt = 0
	lease := time.Duration(answer.Lease) * time.Microsecond
	b.loan.from, b.loan.until = b.ask.sent, b.ask.sent.plus(lease-lease/Drift-2*time.Microsecond)
	if answer.Held > 0 {
		b.span = min(b.span, max(b.period, lease/leasePeriods))
	}
	if b.loan.limit = b.ask.Spent + answer.Held - b.loan.returned; answer.Held > b.ask.Live {
		b.loan.hold = inForce
	}
	if answer.Held > 0 && !b.lasts(now, 0) { // it came too late to be spent, and the store counts it from later on
		b.ask.doubt = now.Mono + lease
	}
	switch {
	case answer.Overruled:
		b.giveUp(0)
	case b.ask.void:
		b.giveUp(reserve)
	}
	b.charged.latest = max(b.charged.latest, b.At(now))
	b.hear(now, answer)
	return true
}

// Fail gives up an ask, and reports whether it was still under way. It may be carried out, or not,
// or later, unless the store never began it: then what it told can still be taken back.
func (b *Borrower) Fail(number int64, mayHaveRun bool) bool {
	if !b.ask.underWay || number != b.ask.Number {
		return false
	}
	b.settle(mayHaveRun)
	b.ask.doubt = max(b.ask.doubt, b.loan.until.Mono)
	if mayHaveRun && (b.ask.Want > 0 || b.ask.Borrows) {
		b.ask.doubt = b.ask.sent.Mono + time.Duration(b.ask.Lease)*time.Microsecond
	}
	return true
}

// settle ends the ask that is under way, and notes whether what it told may be the store's.
func (b *Borrower) settle(mayHaveRun bool) {
	if mayHaveRun {
		b.charged.until = max(b.charged.until, b.charged.asked)
	} else {
		b.ask.Spent = b.ask.reported
	}
	b.ask.underWay, b.charged.asked = false, 0
}
