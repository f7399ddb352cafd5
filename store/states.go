package store

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// A key has a state for each family of limits that it meets in a zone, see
// [algorithms.Algorithm]. Such limits come from plans, placeholders, overrides and the
// configs of other processes. They never erase each other's counts:
//
//   - For every limit, the requests that are admitted under it alone never exceed what it
//     allows, whatever requests under other limits come in between.
//   - A limit that is raised or lowered takes effect at once, and starts from what was used
//     under limits of its family.

// stateVersion is the version of the states and their names. It goes up when the form of a
// state changes, so that no version misreads the states of another.
const stateVersion = ".4"

// States identifies the states that the limits of one family share, one for each key.
type States struct {
	// ID is their name: the zone, the algorithm with the version of the states, and the
	// family, escaped and separated by colons.
	ID string

	// Hash is a hash of the ID, with a random seed of this process.
	Hash uint64
}

func statesOf(zone, algorithm, family string) States {
	id := Escape(zone) + ":" + Escape(algorithm) + stateVersion
	if family != "" {
		id += ":" + family
	}
	return States{id, hash(id)}
}

var seed = maphash.MakeSeed()

func hash(text string) uint64 { return maphash.String(seed, text) }

// In [algorithms.Decision].Override and in scripts, the limit of an override is encoded as a
// byte that is 1 if all parameters are the override's and 0 if only the events are, the
// parameters, and the escaped family.

// limitHead is the length of the byte and the parameters.
const limitHead = 1 + 8*len(algorithms.Params{})

// ChargedBy returns the numbers and the states with which a charge was made, so that it can
// be adjusted. The argument override is the decision's. If it is empty, they are the rule's,
// at a time in microseconds since 1970.
func (r *Rule) ChargedBy(override string, now int64) (*Prepared, States) {
	p := r.At(now)
	if len(override) < limitHead {
		return p, r.states
	}
	params, own, _ := OverrideParams(override, p.Params)
	if !own {
		return prepare(r.algorithm.Name(), params, now, now), r.states
	}
	params = algorithms.WithHold(r.algorithm, params, r.limit.Hold) // the override may be older than the hold
	return prepare(r.algorithm.Name(), params, now, now), statesOf(r.zone, r.algorithm.Name(), override[limitHead:])
}

// OverrideParams returns the parameters of the limit of an override, which [algorithms.Decision].Override
// has, where p are those of the rule. It reports whether all of them are the override's own, otherwise only the events are,
// and whether the override is valid.
func OverrideParams(override string, p algorithms.Params) (params algorithms.Params, own, valid bool) {
	if len(override) < limitHead {
		return p, false, false
	}
	own = override[0] != 0
	for i := range p {
		if own || i == 0 {
			p[i] = int64(binary.BigEndian.Uint64([]byte(override[1+8*i : 9+8*i])))
		}
	}
	return p, own, true
}
