package store

import "time"

// Server describes a server. What the user may not ask is empty.
type Server struct {
	// Version is the version of the server's software.
	Version string

	// RoundTrip is how long the server took to answer.
	RoundTrip time.Duration

	// Evicts is the server's policy if it removes keys while it is full, such as allkeys-lru.
	// Then it forgets clients that are refused.
	Evicts string
}
