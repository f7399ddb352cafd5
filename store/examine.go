package store

import (
	"fmt"
	"strings"
	"time"
)

// Examination is the condition of a store. What does not apply to a store, or what it could not
// find out, is zero.
type Examination struct {
	Servers []Condition

	// Timeout bounds a decision.
	Timeout time.Duration

	// Rights says whether the user has the rights that the store needs. Nil means it is not
	// known.
	Rights *Rights

	// Keys and MaxKeys are the keys that a store in memory has, and may have. Sharing says that
	// new keys share states because there was no room.
	Keys, MaxKeys int
	Sharing       bool
}

// Rights are the rights of the user at a server.
type Rights struct {
	Missing []string // commands that the user may not run
}

// Err says which rights are missing, or returns nil. It is an error of the kind [FailureAuth].
func (r *Rights) Err() error {
	if r == nil || len(r.Missing) == 0 {
		return nil
	}
	return missingRights(r.Missing)
}

// missingRights are commands that a user may not run.
type missingRights []string

func (m missingRights) Error() string {
	return fmt.Sprintf("the user may not run %s: give it the rights +%s", strings.Join(m, ", "), strings.Join(m, " +"))
}

// Failure returns the kind of the error, see [Failure].
func (m missingRights) Failure() string { return FailureAuth }

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
