// Package algorithms holds the rate limiting algorithms. An algorithm takes a limit, the
// state of one key, the time and a cost, and returns a decision and the next state.
//
// Everything here is pure: no clock, no I/O, no Caddy. A store owns the clock and the
// states, and calls in. Times and durations are whole microseconds on the store's clock,
// and all results are exact integers.
//
// Each algorithm has a Lua port, which runs inside Redis. The Go function and its Lua port
// take the same arguments and return the same results, field by field, for any sequence of
// calls.
//
// Several limits can hold for one key: plans, placeholders, overrides, a fleet with two configs. They
// share a state only if its decay is the same: the same window, or the same rate of a bucket. That is the
// family of a limit, and part of the state's name. So for every limit, what is admitted under it alone never
// exceeds it. The price is that a bucket whose rate changes starts from zero.
//
// A charge can change afterwards: by a refund, or by a cost that is known late. An adjustment goes to the
// state that was charged, and a refund never makes more room than there would be without the charge. So
// a bucket assumes that a charge comes back from the moment at which it was made, and a queue takes back
// only its last turn.
package algorithms

import "time"

// Params are a valid [Limit] in the form that an algorithm computes with. Each algorithm
// defines what its numbers mean. Go and Lua get the same ones.
type Params [6]int64

// Algorithm is common to all algorithms. Each one also implements exactly one of
// [Counter], [Recorder] and [Leaser], which determines what a store keeps for a key.
type Algorithm interface {
	// Name returns the word that selects the algorithm in a config.
	Name() string

	// Prepare checks a limit and returns the numbers to compute with. Its error names the
	// option, its value and the bound.
	Prepare(Limit) (Params, error)

	// Family names the limits that share one state of a key. All limits of a family read a
	// state in the same way, and none of them forgets what still counts for another. So the
	// family depends on what changes the state as time passes, such as the window or the
	// rate, and not on how much fits: a limit that is raised or lowered then still finds what
	// was used. The name is a short readable text. It is empty if all limits of the algorithm
	// are one family.
	Family(Limit) string
}

// Counter is an algorithm whose state is a few numbers.
type Counter interface {
	Algorithm

	// Take decides whether cost fits at now, and returns the state to keep if it is
	// charged. A refused cost and a cost of 0 leave the state as it was.
	// Time does not go back for a key: an earlier now counts as the latest one seen.
	Take(s State, p Params, now, cost int64) (State, Decision)

	// Adjust returns the state after a charge is changed. The charge was made at the instant
	// at, for a request whose turn to leave was turn: see [Decision]. A negative delta gives
	// back as much of the charge as still counts. A positive delta charges more, beyond the
	// limit if necessary; later costs are then refused until enough has come back.
	//
	// Giving back never leaves more room than if the charge had not been made.
	Adjust(s State, p Params, now, at, turn, delta int64) State

	// Ahead is of a state to which a cost was just charged at now. No other charge at this instant may be before it. It
	// charges up to want units more, and returns how many and for how long they may be spent, in microseconds from now.
	// An adjustment of them is of a charge that was made at now plus this time, with now as its turn. See [Limit].Hold.
	Ahead(s State, p Params, now, cost, want int64) (after State, units, lasts int64)

	// Merges reports whether several equal costs at one instant can be decided in one step: the number of costs that fit
	// is Remaining divided by the cost, and charging their sum once leads to the same state as charging them one by one.
	Merges(p Params) bool
}

// Lossy is an algorithm that cannot always give back all of a charge, because its state
// does not say how much of the charge has already come back by itself.
type Lossy interface {
	Counter
	lossy()
}

// Recorder is an algorithm that remembers every event.
type Recorder interface {
	Algorithm

	// Decide decides whether cost fits at now. It changes nothing.
	Decide(l *Log, p Params, now, cost int64) Decision

	// Record charges a cost that Decide has allowed for the same now, and up to want units ahead, like Ahead of [Counter].
	// Lasts is how far ahead of now the charge counts as made, even if there are no units.
	Record(l *Log, p Params, now, cost, want int64) (units, lasts int64)

	// Adjust changes a charge as [Counter].Adjust does.
	Adjust(l *Log, p Params, now, at, delta int64)
}

// Leaser is an algorithm whose charges are leases: a charge counts until it is given back,
// or until its lease ends because it was not renewed.
type Leaser interface {
	Algorithm

	// Decide decides whether cost fits at now. It does not change what is held, but may let it end earlier.
	Decide(l *Leases, p Params, now, cost int64) Decision

	// Lease charges a cost that Decide has allowed for the same now. The ID names
	// the lease; to lease again under the same name renews it.
	Lease(l *Leases, p Params, now, cost int64, id string)

	// Renewal returns how often a lease must be renewed.
	Renewal(p Params) time.Duration
}

// State is what a [Counter] remembers of one key. The zero State is a key never seen.
// Each algorithm defines what its numbers mean.
type State [3]int64

// day is a day in microseconds.
const day = 24 * 60 * 60 * 1_000_000

// maxExact is the bound below which every integer is exact in a double, the only type of
// number in Lua.
const maxExact = 1 << 53
