package store

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// A key has a state for each family of limits that it meets in a zone: see
// [algorithms.Algorithm]. So limits never wipe each other:
//
//   - For every limit, the requests that are admitted under it alone never exceed what it
//     allows, whatever requests under other limits come between.
//   - A limit that is raised or lowered takes effect at once. Within its family it finds
//     what was used; otherwise it begins with what was used under its family.
//
// Other limits are those of plans, those out of placeholders, that of the key's own, and
// those of processes with another config.

// stateVersion is the version of the states and their names. It goes up when a state
// changes its form, so that no version misreads what another one has left.
const stateVersion = ".2"

// States are the states that the limits of one family share, one for each key.
type States struct {
	// ID names them: the zone, the algorithm with the version of its states, and the
	// family, escaped and with colons between.
	ID string

	// Hash is a hash of the ID, by a seed that this process has drawn.
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

// A limit of a key's own is told, in [algorithms.Decision].Own and by scripts, as a byte
// that says whether its window is its own too, its parameters, and then the family,
// escaped.

// ownHead is how long byte and parameters are.
const ownHead = 1 + 8*len(algorithms.Params{})

// ChargedBy says what a charge is corrected by: numbers and states are those of the rule at a
// time in microseconds since 1970, or those of the key's own limit that made the charge, as
// its decision has told.
func (r *Rule) ChargedBy(own string, now int64) (*Prepared, States) {
	p := r.At(now)
	if len(own) < ownHead {
		return p, r.states
	}
	params := p.Params
	if own[0] == 0 {
		params[0] = int64(binary.BigEndian.Uint64([]byte(own[1:])))
		return prepare(r.algorithm.Name(), params, now), r.states
	}
	for i := range params {
		params[i] = int64(binary.BigEndian.Uint64([]byte(own[1+8*i:])))
	}
	return prepare(r.algorithm.Name(), params, now), statesOf(r.zone, r.algorithm.Name(), own[ownHead:])
}
