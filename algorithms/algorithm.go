// Package algorithms holds the rate limiting algorithms: how a limit, the state of
// one key, the time and a cost become a decision and the next state.
//
// Everything here is pure. There is no clock, no I/O and no Caddy: a store owns the
// time and the states, and calls in. Times and durations inside are whole
// microseconds on the store's clock, and every answer is exact in integers.
//
// Each algorithm has a twin in Lua that Redis runs. Twin and Go function take the
// same arguments and give the same answers, field by field, for any schedule.
package algorithms

import "time"

// Params are a valid [Limit] as an algorithm computes with it: what the numbers
// mean is the algorithm's own. Go and Lua get the same ones.
type Params [6]int64

// Algorithm is what every algorithm has. It is also one of [Counter], [Recorder] and
// [Lender], which says what a store keeps for a key.
type Algorithm interface {
	// Name is the word that selects the algorithm in a config.
	Name() string

	// Prepare checks a limit and works out the numbers to compute with. Its error
	// names the option, its value and the bound.
	Prepare(Limit) (Params, error)

	// Family names the limits that share one state of a key. Limits of one family read a
	// state alike, and none of them forgets what counts for another one. So it says what the
	// state depends on as time passes, such as the window or the rate, and not how much fits:
	// then a limit that is raised or lowered finds what was used. It is a short text for
	// people to read, the empty one for all limits of an algorithm or for none.
	Family(Limit) string

	// Script is the body of the Lua twin. See take.lua for its form.
	Script() string
}

// Dated is an algorithm whose parameters depend on the date for some limits.
type Dated interface {
	// PrepareAt makes the parameters of a limit that Prepare accepts, and tells until
	// when they are good.
	PrepareAt(l Limit, now time.Time) (Params, time.Time)
}

// Counter is an algorithm whose state is a few numbers.
type Counter interface {
	Algorithm

	// Take decides whether cost fits at now, and returns the state to keep if it is
	// charged. A refused cost and a cost of 0 (a peek) leave the state as it was.
	// Time does not go back for a key: an earlier now counts as the latest one seen.
	Take(s State, p Params, now, cost int64) (State, Decision)

	// Adjust returns the state after a charge is changed that was made at an instant, and
	// of a request that was to leave at turn: see [Decision]. A delta below 0 gives back as
	// much as still counts, and leaves alone what does not. One above 0 charges more,
	// beyond the limit if need be: then later costs are refused until it is paid.
	//
	// What is given back never makes room for more than if it had not been charged.
	Adjust(s State, p Params, now, at, turn, delta int64) State
}

// Merger is a Counter for which, with some parameters, several equal costs at one instant
// come to the same as one cost that is as large as all of them: there is room for
// Remaining divided by cost, and the state after is the same. Then a store may decide them
// in one step.
type Merger interface {
	Counter

	// Merges tells whether that is so with these parameters.
	Merges(p Params) bool
}

// Lossy is an algorithm that cannot always give back all of a charge, because its state
// does not say what of it has come back by itself.
type Lossy interface {
	Counter
	lossy()
}

// Recorder is an algorithm that remembers every event.
type Recorder interface {
	Algorithm

	// Decide tells whether cost fits at now. It changes nothing.
	Decide(l *Log, p Params, now, cost int64) Decision

	// Record charges a cost that Decide has allowed for the same now.
	Record(l *Log, p Params, now, cost int64)

	// Adjust is as that of a [Counter].
	Adjust(l *Log, p Params, now, at, delta int64)
}

// Lender is an algorithm whose charges are held until they are given back, or until
// they are no longer renewed.
type Lender interface {
	Algorithm

	// Decide tells whether cost fits at now. It changes nothing.
	Decide(l *Leases, p Params, now, cost int64) Decision

	// Lend charges a cost that Decide has allowed for the same now, under a name. To
	// lend what is held already renews it.
	Lend(l *Leases, p Params, now, cost int64, hold string)

	// Renewal is how often a lease must be renewed.
	Renewal(p Params) time.Duration
}

// State is one key's memory. The zero State is a key never seen. What the numbers
// mean is the algorithm's own.
type State [3]int64

// maxStepBack bounds how far a clock is believed to have gone back, in microseconds.
// A state from further in the future is damaged, and counts as a key never seen:
// otherwise it would refuse its client until that future comes.
const maxStepBack = 24 * 60 * 60 * 1_000_000

// maxExact is the first integer after which a double, which is all that Lua has, skips some.
const maxExact = 1 << 53
