package store

import (
	"hash/maphash"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
)

// NewLendingRule is like [NewRule], for a limit of which a [Shared] lends parts. A process asks
// it about once in a period for a key that comes often. The states are others than those of the
// limit without a period, but for a Leaser, of which a process keeps slots for the next requests.
func NewLendingRule(zone string, algorithm algorithms.Algorithm, limit algorithms.Limit, salt uint64, period time.Duration) (*Rule, error) {
	if err := lend.Check(algorithm, limit, period); err != nil {
		return nil, err
	}
	r, err := NewRule(zone, algorithm, limit, salt)
	if err != nil {
		return nil, err
	}
	r.lend, r.longestLend = period, lend.Longest(limit, period)
	if _, r.leaser = algorithm.(algorithms.Leaser); !r.leaser {
		r.states = statesOf(zone, algorithm.Name(), Escape(algorithm.Family(limit)+lentFamily))
	}
	// The name of its states has the time zone, and no queue lends, so that the store needs no longest wait.
	limit.Location, limit.MaxWait = nil, 0
	r.terms = maphash.Comparable(seed, terms{r.states, limit, period})
	return r, nil
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

// Lend returns how often a process asks a [Shared] for parts of the limit, or 0.
func (r *Rule) Lend() time.Duration { return r.lend }

// LongestLend returns the longest time between two asks for parts of the limit, of a key that comes
// rarely: see [lend.Longest].
func (r *Rule) LongestLend() time.Duration { return r.longestLend }

// LendsParts reports whether parts of the limit are lent, and KeepsSlots whether slots of it are kept instead:
// those of a [algorithms.Leaser], for the next requests of this process.
func (r *Rule) LendsParts() bool { return r.lend > 0 && !r.leaser }

// KeepsSlots reports whether slots are kept: see [Rule.LendsParts].
func (r *Rule) KeepsSlots() bool { return r.lend > 0 && r.leaser }
