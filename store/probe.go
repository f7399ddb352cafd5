package store

import (
	"context"
	"time"
)

// Prober is a [Store] that asks a server, and can find out whether the server answers before a
// request needs it.
type Prober interface {
	// Probe asks the server, or all servers that hold states, and describes the one that takes
	// the longest. It fails as Take does, and also if the login is wrong. Rights are told also
	// beside an error, and a right may be missing without one: only some zones may need it.
	Probe(ctx context.Context) (Server, error)
}

// Server describes a server. What the user may not ask is empty.
type Server struct {
	// Version is the version of the server's software.
	Version string

	// RoundTrip is how long the server took to answer.
	RoundTrip time.Duration

	// Evicts is the server's policy if it removes keys while it is full, such as allkeys-lru.
	// Then it forgets clients that are refused.
	Evicts string

	// Rights are those of the user. Nil means they are not known.
	Rights *Rights
}

// Required is a [Backend] whose store may have to answer before a config starts.
type Required interface {
	// Required reports whether it does.
	Required() bool
}
