// Package store defines [Store], which keeps the states of all keys and decides on requests.
//
// Its words: a zone is a limit with a name. A key identifies a client, or whatever else
// the zone counts separately; each pair of zone and key has a state. A check asks whether
// one cost fits the zone's limit for one key. A charge is a check that was allowed and
// counted.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

var (
	// ErrClosed is what a store returns after Close.
	ErrClosed = errors.New("store is closed")

	// ErrUnavailable is wrapped by the errors of a store that does not ask its server for a
	// while, because the server did not answer. Nothing was charged, and no time was lost.
	ErrUnavailable = errors.New("store is unavailable")

	// ErrFull is wrapped by the errors of a store that answers but has no room for the charge.
	// It is certain that nothing was charged. A check that the limit refuses is refused even
	// without room, because a refusal needs none.
	ErrFull = errors.New("store is full")

	// ErrBusy is wrapped by the errors of a store that has not asked its server, because this
	// process has more to do than it can. The server may be well, and nothing was charged. Such
	// a request must not pass for it: by sending more than this process can do, clients would
	// choose not to be limited.
	ErrBusy = errors.New("this process is too busy to ask the store")
)

// MaxChecks is the largest number of checks in one call.
const MaxChecks = 255

// Check asks for one cost in one zone.
type Check struct {
	// Rule is the zone's limit.
	Rule *Rule

	// Key identifies the client within the zone. It can be any bytes of any length; the empty
	// key is a key like any other.
	Key string

	// Cost is what the request takes from the limit, at least 0. A cost of 0 charges nothing,
	// and is always allowed unless the key is banned.
	Cost int64

	// LeaseID is a name for the charge that is unique in the whole fleet and in all calls, so that the charge can
	// be renewed and given back. To ask again needs a new one, because an earlier call may have charged the old
	// one, and give it back later. Only an [algorithms.Leaser] needs one. See [NewLeaseID].
	LeaseID string

	// Independent separates the check from the others of its call. It is decided and charged
	// by itself, whatever the decisions on the others are, and its refusal does not affect
	// them.
	Independent bool

	// Ahead is how many units to charge beside the cost, for requests to come, if the check passes: fewer, down to none,
	// if little is left, and none of a key with an override or a ban. See [algorithms.Decision].Units. The
	// limit must have a hold.
	Ahead int64

	// Peek asks how the check would be decided, and changes nothing: nothing is charged or
	// held, a refusal does not count towards a ban, and the other checks of the call are
	// decided as if this one were not there. The store's server answers, not a cache of
	// refusals. If the check would pass, its decision describes the key without the charge, but
	// has the Delay of the check.
	Peek bool

	// KeyRules are what takes precedence over the limit for single keys of the zone. Nil
	// means nothing does.
	KeyRules *KeyRules
}

// Alone reports whether the check is decided by itself, whatever the decisions on the other
// checks of its call are.
func (c *Check) Alone() bool { return c.Independent || c.Peek }

// KeyRules say what a store must consult besides the state of a key. They are the same for
// all checks of a zone.
type KeyRules struct {
	// Overrides reports whether keys may have overrides: see [Overrider].
	Overrides bool

	// Ban says when keys that are refused again and again are banned. Nil means never.
	Ban *Ban
}

// Adjustment changes a charge that [Store.Take] has made, or may have made before it failed.
type Adjustment struct {
	// Check is the check that was charged.
	Check

	// At is when it was charged: Decision.Booked().
	At int64

	// Turn is when the request was to leave: Decision.Turn(). Without a queue, that is when it
	// was decided.
	Turn int64

	// Delta is added to the charge. A negative Delta gives back, -Cost all of the charge. A
	// positive Delta charges more, beyond the limit if necessary; later requests then wait.
	Delta int64

	// Known is how long after the charge a positive Delta became known, at most; 0 if that is not
	// known. If it reaches the store only when it would not count any more, it is dropped.
	Known time.Duration

	// Override is Decision.Override. If the limit of an override decided, it identifies the
	// state that was charged, whatever override the key has by now.
	Override string

	// Done, if not nil, is called once it is certain whether the adjustment has changed the
	// state of a Counter; for a turn in a queue, whether the turn has come back. It is called
	// at most once, from any goroutine, and never for an adjustment that was given up. A turn
	// whose adjustment is in doubt may have come back, so it must not be used again.
	Done func(changed bool)
}

// OfBefore reports whether the adjustment gives back what was charged before a state began, so that the state does not
// have it. What was charged ahead is booked later than it was charged: at its turn.
func (a *Adjustment) OfBefore(began int64) bool {
	return a.Delta < 0 && (a.At < began || a.Turn > 0 && a.Turn < began)
}

// GiveBack returns the adjustment that gives back all that a check was charged by a decision.
func GiveBack(c *Check, d *algorithms.Decision) Adjustment {
	return Adjustment{Check: *c, At: d.Booked(), Turn: d.Turn(), Delta: -c.Cost, Override: d.Override}
}

// Store decides checks. Its methods may be called from many goroutines at once.
//
// Package storetest holds this contract as tests.
type Store interface {
	// Take decides all checks at one instant of the store's clock and fills in one decision
	// for each. If every check passes, all are charged. If one is refused, none is charged,
	// and the decisions on the others describe their keys without the charge.
	//
	// A refusal is a decision, not an error. A store may refuse from a cache of refusals; then
	// it has not decided the other checks, and their decisions have no numbers. A store that
	// answers but has no room for a charge fails with [ErrFull] if the checks would pass, and
	// refuses if they would not; an independent check among others then keeps its decision,
	// without a charge. After an error the decisions mean nothing, and the checks may have
	// been charged once or not at all, but never twice.
	//
	// The store renews the leases of a Leaser until they are given back or the store is
	// closed.
	//
	// There must be at most [MaxChecks] checks, and no two with the same zone and key. Take
	// keeps neither slice. It MUST return soon after ctx is done, whatever its server does.
	Take(ctx context.Context, checks []Check, decisions []algorithms.Decision) error

	// Adjust changes charges. A lease ends when all of its cost is given back. A turn in a
	// queue comes back only if no later turn depends on it. A charge that no longer counts is
	// not refunded. The same holds for one that the state does not have because the key was reset,
	// or because the store has lost the state. Refunds have no identity, so the same one twice counts twice, except for
	// leases and turns.
	//
	// Adjust does not wait: it may take effect a moment later. If the server is away, the
	// adjustment is sent when it is back, as long as it still matters.
	Adjust(adjustments ...Adjustment)

	// Reset makes a key of a zone new: it forgets the state under the rule, the state under
	// the limit of the key's override, refusals and bans. An override stays. States under
	// other rules of the zone need a call each.
	Reset(ctx context.Context, rule *Rule, key string) error

	// Close stops the store and frees its resources. Calls in progress may fail with
	// [ErrClosed].
	Close() error
}

// Fleet is a [Store] that several processes share, and that can count them.
type Fleet interface {
	// Instances returns how many processes were seen lately, including this one: at least 1.
	Instances() int
}
