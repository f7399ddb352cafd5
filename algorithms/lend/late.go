package lend

// Late spends what is held on a late cost of a request, and returns how much of it is paid. The store
// charges the rest.
func (b *Borrower) Late(now Moment, cost int64) int64 {
	if !b.lasts(now, 0) {
		return 0
	}
	paid := min(cost, b.Spare(now))
	b.loan.spent += paid
	b.news.Remaining = max(0, b.news.Remaining-(cost-paid))
	return paid
}

// Owes tells that the store has charged a late cost, and that nothing is free since: what is charged and
// lent may exceed the limit. So nothing is spent of what the store has lent before: it is given
// back, and the next ask says what may be held then.
func (b *Borrower) Owes() {
	b.giveUp(0)
	b.ask.void, b.news.Remaining = b.ask.underWay, 0
}

// Void gives up what is held, because other rules may hold for the key by now: an operator has set an override or a
// ban, or the store has forgotten the key. The next ask says what does.
func (b *Borrower) Void() {
	b.giveUp(0)
	b.ask.void = b.ask.underWay
	b.news.say(fresh, 0, 0)
}

// giveUp gives up what no request has reserved, but for a cost that is to be reserved now. The store does not
// know it yet.
func (b *Borrower) giveUp(but int64) {
	b.loan.limit, b.loan.hold = min(b.loan.limit, b.loan.spent+b.loan.reserved+but), givenUp
	b.ask.doubt = max(b.ask.doubt, b.loan.until.Mono)
}

// unused gives up what a request has not used in the end, if everything else was given up.
func (b *Borrower) unused(cost int64) {
	if b.loan.hold == givenUp {
		b.loan.limit -= cost
		b.loan.returned += cost
	}
}
