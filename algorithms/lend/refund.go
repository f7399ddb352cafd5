package lend

// charges says up to which times, as At tells them, charges are or may be the store's. Only what was spent since can be
// taken back.
type charges struct {
	until  int64
	asked  int64 // the same, if the ask that is under way is carried out
	before int64 // the same before the last ask
	latest int64 // what At told before the last answer, at most: it goes back if an answer was slow
}

// justBefore is how much the time that a borrower knows may be behind that of the store, in microseconds. If it is behind by
// more, the store's clock has gone back.
const justBefore = 1_000_000

// Refund takes back what a request has spent, and reports whether it did: nothing that was
// reported can be taken back.
func (b *Borrower) Refund(now Moment, at, cost int64) bool {
	if at <= max(b.charged.until, b.charged.asked) || cost > b.loan.spent-b.ask.Spent || !b.lasts(now, 0) {
		return false
	}
	b.loan.spent -= cost
	b.unused(cost)
	if b.news.mode == refusing {
		b.news.say(refusing, 0, 0)
	}
	return true
}

// Reports reports whether the ask that is under way tells the store of what was spent at a time. A refund of
// that should come to the store after the ask: before, there is nothing to take it off.
func (b *Borrower) Reports(at int64) bool { return b.ask.underWay && at > b.charged.before }

// noteCharged notes up to which time the store may have charged requests by itself, so that what it has
// charged is not taken back from what was spent since. It comes back by itself meanwhile.
func (b *Borrower) noteCharged(answer Answer) {
	at := answer.At
	if b.ask.Borrows && answer.Held > 0 { // the cost was lent
		at--
	}
	b.charged.until = max(b.charged.until, at)
}

// ChargedAlone tells that the store has charged a request that asked for itself, and how much is left since.
func (b *Borrower) ChargedAlone(at, remaining int64) {
	b.charged.until, b.news.Remaining = max(b.charged.until, at), min(b.news.Remaining, remaining)
}
