package store

// Backend is the options of a store, and how to open it. In Caddy, it is a module in the
// namespace http.rate_limit.stores. If it is a [fmt.Stringer], errors call the store that; it
// may hold no secret. Handlers whose backends have one identity share one store, over all
// configs that are alive.
type Backend interface {
	// Identity tells this store from any other. It may hold no secret.
	Identity() (string, error)

	// Open makes the store. It MUST NOT wait for a server to answer.
	Open() (Store, error)
}

// Detailer is a [Backend] that says more of itself than its name, for the admin API: where
// it is and what it is made of, no secrets.
type Detailer interface {
	Details() map[string]any
}

// Partitioned is a [Backend] that may keep the keys of one request on several servers.
type Partitioned interface {
	// Partitioned reports whether it does. Then zones are charged one after the other, and
	// what a zone has charged is given back if another one refuses.
	Partitioned() bool
}

// InProcess is a [Store] that keeps its states in this process, and so asks no server.
type InProcess interface {
	InProcess()
}
