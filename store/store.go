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

// ErrClosed is what a store returns after Close.
var ErrClosed = errors.New("store is closed")

// Check asks for one cost in one zone.
type Check struct {
	// Rule is the zone's limit.
	Rule *Rule

	// Key tells clients apart within the zone: any bytes, any length. The empty key is
	// a key like any other.
	Key string

	// Cost is what the request takes from the limit, at least 0. 0 peeks: it is always
	// allowed and charges nothing.
	Cost int64
}

// Store decides checks. Its methods may be called from many goroutines at once.
//
// The suite in storetest is this contract as tests.
type Store interface {
	// Take decides all checks at one instant of the store's clock and fills in one
	// decision for each. If every check passes, all are charged; if one is refused,
	// none is, and the decisions on the others describe their keys without the charge.
	//
	// A refusal is a decision, not an error. After an error no decision means anything,
	// and the checks may have been charged once or not at all, never twice.
	//
	// No two checks may have the same zone and key. Take keeps neither slice, and it
	// MUST return soon after ctx is done, whatever its backend does.
	Take(ctx context.Context, checks []Check, decisions []algorithms.Decision) error

	// Reset forgets a key of a zone, as if it had never been seen.
	Reset(ctx context.Context, rule *Rule, key string) error

	// Close frees what the store holds. Calls under way may fail with [ErrClosed].
	Close() error
}
