// Package store says what keeps the states of all keys and decides on them.
//
// The words: a zone is a limit with a name. A key is the client, or whatever else the
// zone tells apart; zone and key together have a state. A check asks whether one cost
// fits a zone's limit for one key. A charge is a check that was allowed and booked.
package store

import (
	"context"
	"errors"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

var (
	// ErrClosed is what a store returns after Close.
	ErrClosed = errors.New("store is closed")

	// ErrUnavailable is in the errors of a store that does not ask its backend for a
	// while, because that has not answered: nothing was charged, and it took no time.
	ErrUnavailable = errors.New("store is unavailable")

	// ErrFull is in the errors of a store that answers but has no room for the charge. It is
	// certain that nothing was charged. Who is refused without a charge is refused all the
	// same.
	ErrFull = errors.New("store is full")
)

// MaxChecks is how many checks one call may have.
const MaxChecks = 255

// Check asks for one cost in one zone.
type Check struct {
	// Rule is the zone's limit.
	Rule *Rule

	// Key tells clients apart within the zone: any bytes, any length. The empty key is
	// a key like any other.
	Key string

	// Cost is what the request takes from the limit, at least 0. A cost of 0 is always
	// allowed, unless the key is banned, and charges nothing.
	Cost int64

	// Hold names the charge, uniquely in all of the fleet, so that it can be renewed and
	// given back. Only an [algorithms.Lender] needs one.
	Hold string

	// Independent sets the check apart from the others of its call: it is decided and charged by
	// itself, whatever becomes of them, and its refusal holds up nobody else.
	Independent bool

	// Peek asks what would become of the check, and changes nothing: nothing is charged or
	// held, a refusal does not count towards a ban, and the other checks of the call are
	// decided as if this one were not there. The store itself answers, rather than what it
	// remembers. A check that would pass is described without its charge, as if it had cost
	// nothing.
	Peek bool

	// KeyRules are what stands above the limit for single keys of the zone. Nil: nothing.
	KeyRules *KeyRules
}

// Alone reports whether the check is decided by itself, whatever becomes of the other checks
// of its call.
func (c *Check) Alone() bool { return c.Independent || c.Peek }

// KeyRules say what a store is to look at beside the state of a key. They are the same
// for all checks of a zone.
type KeyRules struct {
	// Overrides says that keys may have overrides: see [Overrider].
	Overrides bool

	// Ban is when keys are banned that are refused again and again. Nil: never.
	Ban *Ban
}

// Adjustment changes a charge afterwards: one that [Store.Take] has made, or may have
// made before it failed.
type Adjustment struct {
	// Check is what was charged.
	Check

	// At is when it was charged: Decision.Booked().
	At int64

	// Turn is when the request was to leave: Decision.Turn(). Where nothing queues, that is when it was decided.
	Turn int64

	// Delta is added to what was charged. Below 0 it gives back, -Cost all of it; above 0
	// it charges more, beyond the limit if need be: then later requests wait.
	Delta int64

	// Override is Decision.Own: if the limit was the key's own, this says which, so that the
	// state is corrected that was charged, whatever the key has by now.
	Override string

	// Done, if it is not nil, is called with whether the correction has changed the state of a
	// Counter, once that is certain: of a turn in a queue, whether it has come back. It is
	// called at most once, by any goroutine, and never for a correction that was given up.
	// The turn of one that is in doubt may have come back, so it must not be used again.
	Done func(changed bool)
}

// Store decides checks. Its methods may be called from many goroutines at once.
//
// The suite in storetest is this contract as tests.
type Store interface {
	// Take decides all checks at one instant of the store's clock and fills in one
	// decision for each. If every check passes, all are charged; if one is refused,
	// none is, and the decisions on the others describe their keys without the charge.
	//
	// A store may refuse from what it remembers; then it has not looked at the checks that
	// would be refused just for the sake of another, and their decisions hold no numbers.
	//
	// A refusal is a decision, not an error. A store that answers and has no room for a charge
	// fails with [ErrFull] if the checks would pass, and refuses if they would not. A check that
	// stands apart keeps its decision then, if there are others, without a charge. After an error no decision means anything,
	// and the checks may have been charged once or not at all, never twice.
	//
	// What a Lender has lent is renewed by the store until it is given back or the store
	// is closed.
	//
	// There are at most [MaxChecks] checks, and no two have the same zone and key. Take keeps neither slice, and it
	// MUST return soon after ctx is done, whatever its backend does.
	Take(ctx context.Context, checks []Check, decisions []algorithms.Decision) error

	// Adjust corrects charges. What is held ends when all of it is given back; a turn in a
	// queue is given back only where that does nobody harm. What was charged so long ago
	// that it no longer counts is left alone. Nothing tells one refund from another, so
	// the same one twice counts twice, but for slots and turns. Adjust does not wait: it may take effect a
	// moment later, and a backend that is away is told when it is back, as long as that
	// matters.
	Adjust(corrections ...Adjustment)

	// Reset forgets a key of a zone, as if it had never been seen: its state under the rule,
	// that under the limit of its own that it has, and that it was refused or banned. A
	// setting stays. States under other rules of the zone need a call each.
	Reset(ctx context.Context, rule *Rule, key string) error

	// Close frees what the store holds. Calls under way may fail with [ErrClosed].
	Close() error
}

// Fleet is a store that several processes share, and that knows of them.
type Fleet interface {
	// Instances is how many processes were last seen, this one included: at least 1.
	Instances() int
}
