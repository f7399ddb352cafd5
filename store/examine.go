package store

import "time"

// Examination is the condition of a store. What does not apply to a store, or what it could not
// find out, is zero.
type Examination struct {
	Servers []Condition

	// Timeout bounds a decision.
	Timeout time.Duration

	// Keys and MaxKeys are the keys that a store in memory has, and may have. Sharing says that
	// new keys share states because there was no room.
	Keys, MaxKeys int
	Sharing       bool
}

// Condition is the condition of a server.
type Condition struct {
	Address string

	// Trouble says why the server does not decide: one of the Trouble constants, or empty if it
	// does. Err is the error.
	Trouble string
	Err     error

	// RoundTrip is how long a call takes that decides nothing.
	RoundTrip time.Duration

	// ClockAhead is how far the server's clock is ahead of the one of this process. It may be wrong by
	// half of ClockTook, which is how long it took to ask.
	ClockAhead, ClockTook time.Duration

	// Described says that the user may ask for the following.
	Described bool
	Version   string

	// Evicts is the policy by which the server removes keys while it is full, also if that is
	// noeviction. Evicted is the number of keys that it has removed.
	Evicts  string
	Evicted int64

	// Memory and MaxMemory are in bytes. MaxMemory is 0 if there is no limit.
	Memory, MaxMemory int64
}

// What keeps a server from deciding.
const (
	TroubleAnswer  = "answer"  // it cannot be reached, or does not answer
	TroubleTLS     = "tls"     // one side expects TLS and the other does not, or a certificate is not trusted
	TroubleLogin   = "login"   // a wrong user or password
	TroubleRights  = "rights"  // the user lacks a right
	TroubleServer  = "server"  // it is another kind of server than the config says; the error says what to do
	TroubleReplica = "replica" // it is a replica, which is read-only
	TroubleMemory  = "memory"  // its memory is full
)
