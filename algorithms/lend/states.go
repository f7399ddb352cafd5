package lend

// A borrower is three small machines, which the test of their transitions names as well: see states_test.go.
//
//   - talk: quiet until an ask begins, then asking until its answer or until it is given up. It is doubtful as long
//     as the store may have lent something that the borrower does not know of, or count as lent what the borrower
//     has given up. Only the end of an ask or time ends the doubt.
//   - hold: what is held is in force, or was given up for the sake of a late cost. Then only what requests
//     have reserved may still be spent, until an answer lends more than that.
//   - mode: what the last answer says to requests that the loan does not pay for.
//
// What always holds:
//
//   - What may be spent is at most what the store counts as lent: loan.limit never grows but by the answer to
//     the ask under way. So nothing is spent that the store may lend to others.
//   - Each ask tells all that was spent before it, and the most that may be spent before its answer.
//     So the store never counts less as used than was used.
//   - One ask is under way at a time, and only the answer to the last one counts.
//   - What requests have reserved is not negative, and is given back or spent once.
type (
	talk uint8
	hold uint8
	mode uint8
)

const (
	quiet talk = iota
	asking
	doubtful
)

const (
	inForce hold = iota
	givenUp
)

const (
	fresh    mode = iota // there is no answer: they begin an ask
	lent                 // something was lent, or nothing was wanted: they begin an ask
	refusing             // they are refused for a while. Then they begin an ask, which says that.
	scarce               // too little is free to lend: for a while they ask for themselves
)

// talk returns how the borrower stands with the store.
func (b *Borrower) talk(now Moment) talk {
	switch {
	case b.ask.underWay:
		return asking
	case now.Mono < b.ask.doubt:
		return doubtful
	}
	return quiet
}

// loan is what may be spent. Its numbers are since the borrower exists.
type loan struct {
	spent       int64
	limit       int64 // what may be spent
	reserved    int64 // by requests that have neither spent nor given it up yet
	from, until Moment
	hold        hold
	returned    int64 // how much requests have given up since the last ask, of what was given up as a whole
}
