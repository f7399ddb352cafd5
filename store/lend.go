package store

import (
	"hash/maphash"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
)

// NewLendingRule is like [NewRule], for a limit of a zone that lends. A process asks a [Shared] for
// parts of the limit about once in a period for a key that comes often. The states are others than those
// of the limit without a period. Nothing is lent of a Leaser: each of its requests asks.
func NewLendingRule(zone string, algorithm algorithms.Algorithm, limit algorithms.Limit, salt uint64, period time.Duration) (*Rule, error) {
	if Prepaid {
		limit.Hold = period
		return NewRule(zone, algorithm, limit, salt)
	}
	_, leases := algorithm.(algorithms.Leaser)
	if !leases {
		if err := lend.Check(algorithm, limit, period); err != nil {
			return nil, err
		}
	}
	r, err := NewRule(zone, algorithm, limit, salt)
	if err != nil {
		return nil, err
	}
	if r.lend = period; leases {
		return r, nil
	}
	r.longestLend = lend.Longest(limit, period)
	r.states = statesOf(zone, algorithm.Name(), Escape(algorithm.Family(limit)+lentFamily))
	// The name of its states has the time zone, and no queue lends, so that the store needs no longest wait.
	limit.Location, limit.MaxWait = nil, 0
	r.terms = maphash.Comparable(seed, terms{r.states, limit, period})
	return r, nil
}

// Prepaid has zones with lend charge ahead instead of borrowing. Only tests set it.
var Prepaid bool

// Hold returns for how long units of the limit may be held that are charged ahead, or 0 if none are: see
// [algorithms.Prepaid].
func (r *Rule) Hold() time.Duration {
	if r.terms == 0 || r.lend != 0 {
		return 0
	}
	return r.limit.Hold
}

// terms are all that loans depend on.
type terms struct {
	states States
	limit  algorithms.Limit
	period time.Duration
}

// Terms returns a hash of all that loans depend on, with a random seed of this process. What was lent under
// one rule may be spent under another with the same terms. A config that is loaded again has other rules, and
// a limit with placeholders may have another one for each request.
func (r *Rule) Terms() uint64 { return r.terms }

// Lend returns how often a process asks a [Shared] for parts of the zone's limits, or 0 if the zone does not lend.
func (r *Rule) Lend() time.Duration { return r.lend }

// LongestLend returns the longest time between two asks for parts of the limit, of a key that comes
// rarely: see [lend.Longest].
func (r *Rule) LongestLend() time.Duration { return r.longestLend }

// LendsParts reports whether parts of the limit are lent: in a zone that lends, of all but a Leaser.
func (r *Rule) LendsParts() bool { return r.longestLend > 0 }
