// Package protocol is how calls of the script are written, and how their replies are read. It
// sends nothing. lua/take.lua describes them, and lua/counters.lua and lua/groups.lua the two forms.
package protocol

import (
	"encoding/binary"
	"iter"
	"math"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Kind is what the script is to do with a check.
type Kind byte

// What Op.Kind may be.
const (
	Decide Kind = iota
	Renew
	Adjust
	Peek
)

// Op is a check, or another operation on the state of one key.
type Op struct {
	Rule     *store.Rule
	Prepared *store.Prepared
	Key      string // in Redis
	Cost     int64
	Ahead    int64  // how many units to charge ahead, at most MaxAhead
	LeaseID  string // of an adjustment: what EncodeAdjustment returns
	KeyRules *KeyRules
	Kind     Kind
	Alone    bool // the check is decided by itself
	Index    int  // among the caller's checks
}

// MaxAhead is how many units a check can want charged ahead: calls write their number as two bytes.
const MaxAhead = math.MaxUint16

// KeyRules are what the script is to look at beside the state of a key.
type KeyRules struct {
	*store.KeyRules
	Override string // the name of the key's override; empty if it has none
	BanState string // the name of its ban's state; empty if it is never banned
}

// equal reports whether two checks look at the same beside their states.
func (k *KeyRules) equal(other *KeyRules) bool { return k != nil && other != nil && *k == *other }

// merges reports whether several requests for just this can be decided as one. The limit of an override may be a queue.
func (o *Op) merges() bool {
	c := o.Rule.Counter()
	queue := o.KeyRules != nil && o.KeyRules.Override != "" && c == algorithms.Counter(algorithms.LeakyBucket{})
	return c != nil && o.Kind == Decide && !queue && o.Cost > 0 && c.Merges(o.Prepared.Params)
}

// EncodeAdjustment encodes an adjustment for the script: see groups.lua. The Turn of a late cost is until when it counts.
func EncodeAdjustment(a *store.Adjustment) string {
	b := make([]byte, 0, 24+len(a.LeaseID))
	for _, n := range [...]int64{a.At, a.Turn, a.Delta} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return string(append(b, a.LeaseID...))
}

// Request is what one caller asks: groups of operations, with room for the answer. It may
// share a call with other requests.
type Request struct {
	Ops       []Op
	Slot      uint16 // of all its keys, in a Cluster
	Decisions []algorithms.Decision
	Damaged   *store.Rule // of a check whose stored state was damaged
	AllAlone  bool        // all checks are decided by themselves
	Err       error

	ends []int // where in Ops each group ends
}

// Clear makes the request an empty one, which keeps its room.
func (r *Request) Clear() {
	clear(r.Ops)
	r.Ops, r.ends, r.Decisions = r.Ops[:0], r.ends[:0], r.Decisions[:0]
	r.Damaged, r.Err, r.AllAlone = nil, nil, false
}

// EndGroup makes a group of the operations since the last one, if there are any. Checks of a
// group are charged together or not at all.
func (r *Request) EndGroup() {
	if n := len(r.ends); len(r.Ops) > 0 && (n == 0 || r.ends[n-1] < len(r.Ops)) {
		r.ends = append(r.ends, len(r.Ops))
	}
}

// Expect makes room for the decisions on so many checks.
func (r *Request) Expect(checks int) {
	r.Decisions = append(r.Decisions, make([]algorithms.Decision, checks)...)
}

// Groups goes through the groups.
func (r *Request) Groups() iter.Seq[[]Op] {
	return func(yield func([]Op) bool) {
		first := 0
		for _, end := range r.ends {
			if !yield(r.Ops[first:end]) {
				return
			}
			first = end
		}
	}
}

// Charged reports whether a group was charged.
func (r *Request) Charged(group []Op) bool {
	for i := range group {
		if !r.Decisions[group[i].Index].Allowed {
			return false
		}
	}
	return true
}
