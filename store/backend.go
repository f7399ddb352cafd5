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

// Detailer is a [Backend] that describes itself for the admin API.
type Detailer interface {
	// Details returns where the store is and how it is set up, as JSON fields. They must not
	// contain a secret.
	Details() map[string]any
}

// Partitioned is a [Backend] that may keep the keys of one request on several servers.
type Partitioned interface {
	// Partitioned reports whether it does. Then the zones of a request are charged one after
	// the other, and if one of them refuses, the charges in the others are given back.
	Partitioned() bool
}

// InProcess is a [Store] that keeps its states in this process and asks no server.
type InProcess interface {
	// InProcess does nothing. It marks the store.
	InProcess()
}
