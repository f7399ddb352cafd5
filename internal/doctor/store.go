package doctor

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Store is what is known of a store.
type Store struct {
	Name string

	// InProcess says that the store asks no server.
	InProcess bool

	// Err is why a test call failed, of a store that cannot be examined. Tested says that there was
	// such a call.
	Tested bool
	Err    error

	// Examined is what the store says of itself; nil if it cannot.
	Examined *store.Examination

	// Breaker is the state of its breaker; empty if it has none. Failing says that calls of recent
	// requests have failed.
	Breaker string
	Failing bool

	// Asked is how many requests of the last minute waited for it, and P50 and P99 how long.
	Asked    uint64
	P50, P99 time.Duration

	// Mute are the servers that do not say where the states are.
	Mute []store.Silence

	// Busy says that this instance was too busy to ask it within the last minute.
	Busy bool

	Fleet Fleet
}

// Fleet is what is known of the instances that share a store.
type Fleet struct {
	// Size is the number of instances, this one among them; 0 if the store cannot tell.
	Size int

	// Configured is the number of instances in the config; 0 without one.
	Configured int

	// Telling is how many of them tell how they define their zones, and Err why this is not known.
	Telling int
	Err     error
}

var storeChecks = []check[Store]{
	{"answer", answers},
	{"tls", trouble(store.TroubleTLS, alignTLS.With())},
	{"login", trouble(store.TroubleLogin, correctLogin.With())},
	{"rights", trouble(store.TroubleRights, advice.GiveKeys.With())},
	{"server", trouble(store.TroubleServer, advice.Text{})},
	{"replica", trouble(store.TroubleReplica, useMaster.With())},
	{"round_trip", roundTrip},
	{"breaker", breaker},
	{"waits", waits},
	{"busy", busy},
	{"silent", silent},
	{"clock", clock},
	{"memory", memory},
	{"eviction", eviction},
	{"keys", keys},
	{"fleet", fleet},
}

// Silent reports whether the store decides nothing. One that is full still decides what needs no
// room.
func (s *Store) Silent() bool {
	if s.Examined == nil {
		return s.Err != nil
	}
	for _, c := range s.Examined.Servers {
		if c.Trouble == "" || c.Trouble == store.TroubleMemory {
			return false
		}
	}
	return len(s.Examined.Servers) > 0
}

// deciding returns the conditions of the servers that decide.
func (s *Store) deciding() (all []store.Condition) {
	if s.Examined != nil {
		for _, c := range s.Examined.Servers {
			if c.Trouble == "" {
				all = append(all, c)
			}
		}
	}
	return all
}

// described returns the conditions of the servers that say how they are, whether they decide or
// not, and whether there are others of which the user may not ask that.
func (s *Store) described() (all []store.Condition, unknown bool) {
	if s.Examined != nil {
		for _, c := range s.Examined.Servers {
			if c.Described {
				all = append(all, c)
			}
			unknown = unknown || !c.Described && c.Trouble == ""
		}
	}
	return all, unknown
}

// round makes a duration readable.
func round(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Second || d <= -10*time.Second:
		return d.Round(time.Second)
	case d >= 10*time.Millisecond || d <= -10*time.Millisecond:
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}
