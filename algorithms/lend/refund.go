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
