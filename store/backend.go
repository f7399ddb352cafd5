package store

// Backend holds the options of a store and opens it. In Caddy it is a module in the
// namespace http.rate_limit.stores. If it implements [fmt.Stringer], errors name the store
// by its String, which must not contain a secret. Handlers whose backends have the same
// identity share one store, across all configs in use.
type Backend interface {
	// Identity returns a text that differs from that of any other store. It must not contain
	// a secret.
	Identity() (string, error)

	// Open opens the store. It MUST NOT wait for a server to answer.
	Open() (Store, error)
}

// Remote is a [Backend] whose store asks servers.
type Remote interface {
	// Partitioned reports whether the keys of one request may be on several servers. Then the zones of a request are charged
	// one after the other, and if one of them refuses, the charges in the others are given back.
	Partitioned() bool
}

// InProcess is a [Store] that keeps its states in this process and asks no server.
type InProcess interface {
	// CountKeys returns, for each rule, how many states its zone has: one for each key and
	// family of limits. If several rules have the same zone, its number stands with the first
	// of them. CountKeys is for metrics and may take a while.
	CountKeys(rules []*Rule) []int64
}
