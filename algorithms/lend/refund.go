package lend

// Refund takes back what a request has spent, and reports whether it did: nothing that was
// reported can be taken back.
func (b *Borrower) Refund(now Moment, at, cost int64) bool {
	if at <= b.sampled || cost > b.spent-b.asked.Spent || !b.lasts(now, 0) {
		return false
	}
	b.spent -= cost
	b.unused(cost)
	b.refusesFrom = 0
	return true
}

// Reports reports whether the ask that is under way tells the store of what was spent at a time. A refund of
// that should come to the store after the ask: before, there is nothing to take it off.
func (b *Borrower) Reports(at int64) bool { return b.asks && at > b.reported }
