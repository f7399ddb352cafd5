package store

import (
	"context"
	"time"
)

// Observed is a [Store] with statistics, for metrics and for people.
type Observed interface {
	// Stats is cheap, never waits for a server, and may be called from many goroutines at
	// once.
	Stats() Stats

	// Examine describes the store at this moment, for people who look for what is wrong. It charges nothing, asks each server a few
	// cheap questions, and returns soon after ctx is done.
	Examine(ctx context.Context) Examination
}

// Stats are the statistics of a store. A field that does not apply to a store is zero or nil.
type Stats struct {
	// InUse is the number of leases that this process has, by zone: see [Leases].
	InUse map[string]int64

	// Breaker is [BreakerClosed] while the server is asked, [BreakerOpen] while it is not,
	// and [BreakerHalfOpen] while single calls try it.
	Breaker string

	// Silent are the servers that do not say where the states are, by address: Sentinels and nodes of a Cluster.
	// Requests may all be decided nevertheless, until a failover needs these servers.
	Silent []Silence

	// DenyHits counts the refusals that needed no call to the server, because an earlier
	// refusal was remembered. It never decreases.
	DenyHits uint64

	// Lost counts the refunds and late costs that were given up, because the server may or
	// may not have carried them out, or because it was away for too long. It never decreases.
	Lost uint64

	// Waiting is the number of refunds, late costs and slots that wait to be sent again or for the first time.
	Waiting int

	// Calls counts the calls to the servers that are asked now. A call may carry many decisions. It
	// begins again where another server takes over.
	Calls uint64

	// Waited is for how long requests have waited in this process before they were sent to the servers that
	// are asked now, all together. It begins again where another server takes over.
	Waited time.Duration

	// Spared counts the requests that were decided without a call, because this process had charged their keys ahead: see
	// [Rule.Hold]. It never decreases.
	Spared uint64
}

// Silence is of a server that has failed each time for three seconds or more.
type Silence struct {
	Address string
	Since   time.Time // when it first failed
	Err     error     // of the last time
}

// The states of a breaker.
const (
	BreakerClosed   = "closed"
	BreakerHalfOpen = "half-open"
	BreakerOpen     = "open"
)
