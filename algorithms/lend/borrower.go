package lend

import (
	"time"
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
// stops first. See states.go for what a borrower goes through.
type Borrower struct {
	id      uint64
	period  time.Duration // how often it asks at most
	most    time.Duration // the longest time between two asks
	span    time.Duration // the time between asks, as often as requests come now
	demand  demand
	loan    loan
	ask     ask
	news    news
	charged charges
}

// NewBorrower returns a borrower with a random number that no other has. It asks once in a period,
// and when it has spent what it held. If requests come rarely, it asks less often, up to the longest
// time: see [Longest].
func NewBorrower(id uint64, period, longest time.Duration) *Borrower {
	return &Borrower{id: id, period: period, most: longest, span: longest}
}

// ID returns the borrower's number.
func (b *Borrower) ID() uint64 { return b.id }

// lasts reports whether the loan lasts for a while longer.
func (b *Borrower) lasts(now Moment, while time.Duration) bool {
	return now.Mono+while < b.loan.until.Mono && now.Wall+while < b.loan.until.Wall && now.Wall >= b.loan.from.Wall
}

// Live returns what may still be spent at now.
func (b *Borrower) Live(now Moment) int64 {
	if !b.lasts(now, 0) {
		return 0
	}
	return b.loan.limit - b.loan.spent
}

// Holds reports whether anything may be held at now, whether the borrower knows it or not.
func (b *Borrower) Holds(now Moment) bool { return b.Live(now) > 0 || now.Mono < b.ask.doubt }

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
	case b.news.mode == scarce && now.Mono < b.news.until:
		return Alone
	case b.ask.underWay:
		return Wait
	}
	return Begin
}

// Reserve reserves a cost, and reports whether it did. A request that costs nothing
// spends nothing of what was given up, but passes no ban of its key either.
func (b *Borrower) Reserve(now Moment, cost int64, while time.Duration) bool {
	if !b.lasts(now, while) || cost > b.loan.limit-b.loan.spent-b.loan.reserved || cost == 0 && b.loan.hold == givenUp {
		return false
	}
	b.loan.reserved += cost
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
	return b.ask.underWay || b.loan.reserved > 0 || b.Holds(now) || b.pays(now)
}

// pays reports whether enough requests come between two asks.
func (b *Borrower) pays(now Moment) bool {
	span := b.span
	if now.Mono-b.ask.sent.Mono > again*b.most {
		span = b.most
	}
	return b.demand.come(now.Mono, b.period, b.span, span) >= worth
}

// Spend spends what was reserved, and reports whether it did: if the loan has ended meanwhile, what
// was reserved is given up, because the store has counted it as spent by then.
func (b *Borrower) Spend(now Moment, cost int64) bool {
	b.loan.reserved -= cost
	if !b.lasts(now, 0) {
		b.unused(cost)
		return false
	}
	b.loan.spent += cost
	return true
}

// Cancel gives up what was reserved.
func (b *Borrower) Cancel(cost int64) {
	b.loan.reserved -= cost
	b.unused(cost)
}

// Gone reports whether nothing is held or refused any more, and no request has come for a while.
func (b *Borrower) Gone(now Moment) bool {
	return !b.ask.underWay && b.loan.reserved == 0 && !b.lasts(now, 0) && now.Mono >= max(b.news.until, b.ask.doubt) && b.demand.idle(now.Mono, b.most)
}
