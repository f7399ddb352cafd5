// Package lend lends parts of limits to processes, so that most requests need no call to the
// store, and still no more requests pass than the limit allows.
//
// The store keeps a [Book] beside the state of each key: who holds how much. What is held
// counts as used for everybody else until its borrower reports how much of it was spent. So
// what is free and what is lent never exceed the limit together, and what borrowers spend would
// have been admitted by a single process too:
//
//   - What was spent is charged when it is reported, which is later than it was spent, and
//     until then it counts as held. So for every algorithm, more counts as used than was used.
//   - A loan that is not renewed ends. Then all of it counts as spent, whatever happened to its
//     borrower. The borrower stops before that, by its own clocks: see [Borrower].
//   - At most half of what is free is lent at once, so that others find something. When little
//     is free, nothing is lent, and each request is decided by the store.
//
// What operators change meets what is lent ("I6"). While an override or a ban holds, nothing more is lent of a key
// ([Key].Overruled), and a borrower that hears of it gives up what it holds ([Borrower.Void]). Until it does:
//
//   - An override with a limit that counts in the same state admits, with all that is lent, at most the larger of the two
//     limits: what is lent counts as used under both.
//   - A ban admits at most what was lent.
//   - A reset admits what was lent on top of the limit, once, because the store has forgotten it.
//   - Two limits that count in the same state, such as those of plans, count what is lent of the other as used. So
//     each admits what it would admit alone.
//
// Everything here is pure. [Decide] is the store's part, and has a Lua port, lua/lend.lua.
// [Borrower] is the part of a process that borrows.
package lend

import (
	"encoding/binary"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// Loan is what one borrower holds of one key.
type Loan struct {
	Borrower uint64 // a random number
	Number   int64  // of the ask that it was last changed by
	Spent    int64  // what the borrower had spent by then, since it exists
	Held     int64  // what it may have spent since, and may still spend
	Ends     int64  // when all of it counts as spent, in microseconds on the store's clock
}

// Book is all that is lent of one key.
type Book []Loan

const (
	// MaxLoans bounds the loans of one key. Further borrowers get none.
	MaxLoans = 64

	// loanSize is the length of an encoded loan, and of what is said of all.
	loanSize = 40

	// MaxLease bounds how long a loan lasts without being renewed, in microseconds. A loan that
	// ends later is one from before the store's clock went back.
	MaxLease = 60 * 1_000_000

	// maxExact is the bound below which Lua computes exactly, as everywhere in package algorithms.
	maxExact = 1 << 53
)

// Append appends the encoded book, as lua/lend.lua describes it: five big-endian integers of eight
// bytes for all loans, if there are any, and as many for each.
func (b Book) Append(to []byte) []byte {
	if len(b) == 0 {
		return to
	}
	add := func(numbers ...int64) {
		for _, n := range numbers {
			to = binary.BigEndian.AppendUint64(to, uint64(n))
		}
	}
	first, last := b.ends()
	add(0, 0, first, last, b.Held())
	for i := range b {
		l := &b[i]
		add(int64(l.Borrower), l.Number, l.Spent, l.Held, l.Ends)
	}
	return to
}

// Parse decodes a book. It reports whether the text is one. The times of all loans may be bounds.
func Parse(text string) (b Book, ok bool) {
	if text == "" {
		return nil, true
	}
	if len(text)%loanSize != 0 || len(text) < 2*loanSize || len(text) > (1+MaxLoans)*loanSize {
		return nil, false
	}
	number := func(i int) int64 { return int64(binary.BigEndian.Uint64([]byte(text[8*i : 8*i+8]))) }
	zeros, first, last, held := number(0)|number(1), number(2), number(3), number(4)
	for text = text[loanSize:]; text != ""; text = text[loanSize:] {
		l := Loan{uint64(number(0)), number(1), number(2), number(3), number(4)}
		for _, n := range [...]int64{l.Number, l.Spent, l.Ends} {
			if n < 0 || n >= maxExact {
				return nil, false
			}
		}
		if l.Held < 0 || l.Held > algorithms.MaxEvents {
			return nil, false
		}
		b = append(b, l)
	}
	from, to := b.ends()
	return b, zeros == 0 && first <= from && to <= last && held == b.Held()
}

// ends returns when the first of the loans ends, and when the last one does.
func (b Book) ends() (first, last int64) {
	first = maxExact
	for i := range b {
		first, last = min(first, b[i].Ends), max(last, b[i].Ends)
	}
	return first, last
}

// Held returns how much is lent in all.
func (b Book) Held() (held int64) {
	for i := range b {
		held += b[i].Held
	}
	return held
}

// find returns the index of a borrower's loan, or -1.
func (b Book) find(borrower uint64) int {
	for i := range b {
		if b[i].Borrower == borrower {
			return i
		}
	}
	return -1
}

// over returns the index of the loan that ended first, if it is over at now, or -1.
func (b Book) over(now int64) int {
	first := -1
	for i := range b {
		if b[i].Ends <= now && (first < 0 || b[i].Ends < b[first].Ends) {
			first = i
		}
	}
	return first
}
