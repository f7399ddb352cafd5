package lend

import (
	"slices"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// Key is what the store keeps for one key.
type Key struct {
	Account
	Book Book

	// Overruled says that an override or a ban holds for the key, whose numbers the account has. As long as
	// it does, nothing more is lent.
	Overruled bool

	place int // in the book, of the loan that is being renewed; -1: it is a new one
}

// Ask is what a borrower tells and wants of one key. The zero Ask borrows nothing.
type Ask struct {
	Borrower uint64 // 0: none
	Number   int64  // higher than that of any ask before; 0 borrows nothing and reports nothing
	Spent    int64  // what it has spent since it exists
	Live     int64  // what it may still spend of what it holds, before the answer or after it
	Want     int64  // what it wants to hold after the answer
	Lease    int64  // how long, in microseconds
	Brief    int64  // how long if it can only be a large part of what is free; 0: as long
	Scarce   bool   // it was refused the last time
	Cost     int64  // of the request that waits for the answer

	// Borrows says that the cost is lent instead of charged, because it is not certain yet. If it is
	// allowed and nothing is held then, it was charged, because no loan could be made.
	Borrows bool
}

// Most returns the most that can be held after the answer.
func (a *Ask) Most() int64 {
	need := a.Live
	if a.Borrows {
		need += a.Cost
	}
	return max(a.Want, need)
}

// Answer is the answer to an [Ask].
type Answer struct {
	// Decision is the decision on the cost. Everything that is lent counts as used.
	algorithms.Decision

	// Held is what the borrower holds, counted from Ask.Spent, and Lease how long, in
	// microseconds.
	Held, Lease int64

	// Others is what other borrowers hold.
	Others int64

	// Pause is, if something was wanted and nothing is held, after how many microseconds there is
	// enough to lend some of it; -1 for never.
	Pause int64

	// Own says that the cost was refused only because of what its borrower holds, which the ask did not report.
	Own bool

	// Overruled says that an override or a ban has decided, so that nothing that was lent before may be spent,
	// but by the requests that have reserved it.
	Overruled bool
}

// chunk is the part of the quota that must be free again, for each borrower, before a borrower
// that was refused asks again: 1/chunk.
const chunk = 128

// small is the part of what is free that a long loan may be, divided by the number of loans: 1/small. So
// all long loans, which are at most half of MaxLoans, are at most a quarter of what is free.
const small = 16

// Only tests change these.
var (
	// least is the smallest loan: a smaller one saves no call.
	least int64 = 2

	// capped is whether what is lent counts as used.
	capped = true
)

// Expire ends the loans that are over: what they hold counts as spent just before they ended.
func (k *Key) Expire(now int64) {
	for i := k.Book.over(now); i >= 0; i = k.Book.over(now) {
		k.Charge(max(1, k.Book[i].Ends)-1, k.Book[i].Held)
		k.Book = append(k.Book[:i:i], k.Book[i+1:]...)
	}
	for i := range k.Book {
		k.Book[i].Ends = min(k.Book[i].Ends, now+MaxLease)
	}
}

// Lasts returns for how many microseconds the key must be kept.
func (k *Key) Lasts(now int64) int64 {
	at := now
	for i := range k.Book {
		at = max(at, k.Book[i].Ends)
	}
	return at - now + k.Account.Lasts(at, k.Book.Held())
}

// Decide decides the costs of several asks at one instant, all or nothing, and lends. Each ask
// is about the key with the same index.
func Decide(now int64, keys []*Key, asks []Ask) []Answer {
	answers := make([]Answer, len(asks))
	pass := true
	for i, k := range keys {
		a := &asks[i]
		k.report(now, a)
		if answers[i].Overruled = k.Overruled; k.Overruled {
			a.Want, a.Borrows = 0, false
		}
		answers[i].Decision = k.Account.Decide(now, a.Cost, k.counted(a))
		answers[i].Own = !answers[i].Allowed && !k.Overruled && k.own(now, a)
		pass = pass && answers[i].Allowed
	}
	for i, k := range keys {
		a, answer := &asks[i], &answers[i]
		switch {
		case pass && a.Borrows:
		case pass:
			k.Charge(now, a.Cost)
		case answer.Allowed:
			answer.Decision = k.Account.Decide(now, 0, k.counted(a))
		}
		k.lend(now, a, answer, pass)
		if answer.Held == 0 && a.Want > 0 {
			answer.Pause = k.pause(now, a, answer)
		}
		answer.At = now
	}
	return answers
}

// report charges what a borrower has spent, and takes its loan out of the book. After an ask
// that is older than the loan, which has come late, nothing is lent or charged for it.
func (k *Key) report(now int64, a *Ask) {
	k.Expire(now)
	i := k.Book.find(a.Borrower)
	k.place = -1
	switch {
	case a.Number == 0:
	case i < 0:
		// The loan is over, and all of it was charged. Or the store has lost it: then what the
		// borrower may still spend counts as lent again. If there is no room, it counts as spent.
		if len(k.Book) >= MaxLoans {
			k.Charge(now, a.Live)
			a.Number = 0
		}
	case k.Book[i].Number >= a.Number:
		a.Number = 0
	default:
		k.Charge(now, max(0, a.Spent-k.Book[i].Spent))
		if a.Live > 0 { // it must not end earlier than the borrower knows
			a.Lease = max(a.Lease, k.Book[i].Ends-now)
			if a.Brief > 0 {
				a.Brief = max(a.Brief, k.Book[i].Ends-now)
			}
		}
		k.place = i
		k.Book = append(k.Book[:i:i], k.Book[i+1:]...)
	}
	if a.Number == 0 {
		a.Live, a.Want, a.Borrows = 0, 0, false
	}
}

// counted returns what counts as used beside the state: what others hold, and what the borrower
// may still spend.
func (k *Key) counted(a *Ask) int64 {
	if !capped {
		return a.Live
	}
	return k.Book.Held() + a.Live
}

// own reports whether a cost fits without what its borrower holds, which was not reported.
func (k *Key) own(now int64, a *Ask) bool {
	i := k.Book.find(a.Borrower)
	return capped && a.Number == 0 && a.Borrower > 0 && i >= 0 && k.Account.Decide(now, a.Cost, k.counted(a)-k.Book[i].Held).Allowed
}

// lend lends what the borrower wants, or less.
func (k *Key) lend(now int64, a *Ask, answer *Answer, pass bool) {
	lenders, need := int64(len(k.Book))+1, a.Live
	if a.Borrows && pass {
		need += a.Cost
	}
	answer.Others = k.Book.Held()
	parts := 2 * lenders
	if a.Scarce { // everything is wanted, so less is left for later
		parts = max(2, lenders)
	}
	held, lease := min(a.Want, (answer.Remaining+need)/parts), a.Lease
	if part := (answer.Remaining + need) / (small * lenders); a.Brief > 0 && a.Brief < lease {
		if part < least || lenders > MaxLoans/2 {
			lease = a.Brief
		} else {
			held = min(held, part)
		}
	}
	if held < least || !answer.Allowed {
		held = 0
	}
	if held = max(held, need); held == 0 {
		return
	}
	answer.Held, answer.Lease = held, lease
	answer.Remaining -= held - need
	if k.place < 0 {
		k.place = len(k.Book)
	}
	k.Book = slices.Insert(k.Book, k.place, Loan{a.Borrower, a.Number, a.Spent, held, now + lease})
}

// pause returns the wait until there is something to lend again.
func (k *Key) pause(now int64, a *Ask, answer *Answer) int64 {
	parts := int64(len(k.Book)) + 1
	enough := max(a.Cost, min(a.Want, answer.Quota/chunk*parts))
	return micros(k.Account.Decide(now, enough, k.Book.Held()).RetryAfter)
}
