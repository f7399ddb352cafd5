package store

// Observed is a store that tells how it is. It is for metrics and for people: asking
// costs little, never waits for a server, and may be done from many goroutines at once.
type Observed interface {
	Stats() Stats
}

// Stats are the numbers of a store. What a store does not know is zero or nil.
type Stats struct {
	// Held is what this process has lent and not yet been given back, by zone.
	Held map[string]int64

	// Breaker is "closed" while the backend is asked, "open" while it is not, and
	// "half-open" while single calls try it.
	Breaker string

	// DenyHits are the refusals that needed no call, because an earlier answer said for
	// how long to refuse. It only grows.
	DenyHits uint64

	// Lost are the refunds and late costs that were given up, because the backend may have
	// carried them out and did not say so, or was away for too long. It only grows.
	Lost uint64
}

// Breaker states.
const (
	BreakerClosed   = "closed"
	BreakerHalfOpen = "half-open"
	BreakerOpen     = "open"
)

// KeyCounter is a store that has its keys at hand.
type KeyCounter interface {
	// CountKeys is how many states each zone has: one for each key and family of limits. Of
	// several rules of a zone the first has all of them. It is for metrics, and may take a
	// while.
	CountKeys(rules []*Rule) []int64
}
