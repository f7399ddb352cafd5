package store

import (
	"context"
	"time"
)

const (
	// MaxUsageKey is the longest key of a [Usage], in bytes.
	MaxUsageKey = 512

	// MaxUsageBatch is how many sums a call of [UsageKeeper.AddUsage] takes at most, and UsageBatchLife for how long a
	// store knows the number of a batch at least.
	MaxUsageBatch  = 250
	UsageBatchLife = 7 * 24 * time.Hour
)

// UsageKind says what a [Usage] is the sum of.
type UsageKind byte

// The kinds of sums.
const (
	UsageOfKey  UsageKind = 'k' // one key
	UsageOfHash UsageKind = 'h' // one key above MaxUsageKey: Key is its SHA-256 in hexadecimal
	UsageOfRest UsageKind = 'r' // all keys for which there was no room: Key is empty
)

// Usage is what a key has used in a window of a zone.
type Usage struct {
	// Zone and Length name the windows. A zone with another length has other windows.
	Zone   string
	Length time.Duration // whole seconds

	// From is when the window begins, a whole second. Until is when the store may forget it; ReadUsage leaves it out.
	From, Until time.Time

	Kind UsageKind
	Key  string

	// Requests and Cost are of requests that have passed, and Refused counts others. Sums are exact up to 2^53. Cost may
	// be below 0 in AddUsage.
	Requests, Cost, Refused int64
}

// UsageQuery names sums.
type UsageQuery struct {
	Zone   string
	Length time.Duration

	// From is when the first window begins, and To is after the beginning of the last one. From is a multiple of Length
	// since the beginning of a day in UTC.
	From, To time.Time

	// Key, if not nil, is the only key, of this Kind.
	Kind UsageKind
	Key  *string
}

// UsageKeeper is a [Store] that keeps sums of what keys use. Its methods ask the store's backend at once, and fail as Take
// does.
type UsageKeeper interface {
	// AddUsage adds at most MaxUsageBatch sums to those of the same keys and windows. The batches of a process have
	// numbers from 1 up. A call that has failed is to be repeated with the same sums, before the next batch: what it
	// has added is not added again.
	AddUsage(ctx context.Context, process string, batch int64, sums []Usage) error

	// ReadUsage returns some sums, about n at most, and the cursor of the next ones, which is empty after the last. The
	// first cursor is empty. A page may be empty although others follow. Windows come in the order of time, and each sum
	// comes once.
	ReadUsage(ctx context.Context, q *UsageQuery, cursor string, n int) (sums []Usage, next string, err error)
}
