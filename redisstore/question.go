package redisstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// item is a check on its way to the script.
type item struct {
	rule      *store.Rule
	prepared  *store.Prepared
	key       string // in Redis
	slot      uint16 // of the key, in a Cluster
	cost      int64
	hold      string // or a correction and what is held
	sanctions *sanctions
	op        byte
	apart     bool // the check is decided by itself
	index     int  // among the caller's checks
}

// merges says whether several requests for just this can be decided as one.
func (i *item) merges() bool {
	m, ok := i.rule.Algorithm().(algorithms.Merger)
	return ok && i.op == opDecide && i.sanctions == nil && i.cost > 0 && m.Merges(i.prepared.Params)
}

// question is what one caller asks: groups of checks, with room for the answer. It may
// share a call with others.
type question struct {
	items     []item
	groups    []int  // where in items each ends
	slot      uint16 // of all its keys, in a Cluster
	decisions []algorithms.Decision
	damaged   *store.Rule // of a check whose stored state was damaged
	dry       bool        // all checks stand apart
	err       error

	// In a Cluster, where a slot may be on its way from one node to another.
	asking bool // the node is told that it is to answer for a slot that becomes its own
	single bool // shares no call with questions of other keys
	shared bool // was in a call with other questions

	since, until   time.Duration // when it was asked, and how long its caller waits
	next           *question     // of those that wait for a call
	before, behind *question     // see outstanding
	listed         bool
	done           chan error
	ended          atomic.Bool // the caller has his answer, or waits no more
}

var questions = sync.Pool{New: func() any { return newQuestion() }}

func newQuestion() *question {
	return &question{done: make(chan error, 1)}
}

// free lets the question be used again. One whose caller left must not be: the answer may
// be on its way.
func (q *question) free() {
	clear(q.items)
	q.items, q.groups, q.decisions = q.items[:0], q.groups[:0], q.decisions[:0]
	q.damaged, q.err, q.next, q.dry = nil, nil, nil, false
	q.asking, q.single, q.shared = false, false, false
	q.ended.Store(false)
	questions.Put(q)
}

var errHold = errors.New("the name of a hold is too long")

// maxHold is how long the name of a hold may be; its length stands in a byte.
const maxHold = 100

// ask takes up a caller's checks, but for those that are decided already: those to decide
// together, and each that stands apart.
func (q *question) ask(s *Store, checks []store.Check, known *settled) error {
	together := 0
	q.dry = true
	for i := range checks {
		c := &checks[i]
		q.dry = q.dry && c.Alone()
		switch {
		case c.Cost < 0:
			return fmt.Errorf("cost must be at least 0, got %d", c.Cost)
		case len(c.Hold) > maxHold:
			return fmt.Errorf("%w: %d bytes, at most %d", errHold, len(c.Hold), maxHold)
		case !c.Alone() && !known.has(i):
			q.items = append(q.items, s.item(c, opDecide, c.Hold, i))
			together++
		}
	}
	if together > 0 {
		q.groups = append(q.groups, together)
	}
	for i := range checks {
		if c := &checks[i]; c.Alone() && !known.has(i) {
			op, hold := byte(opDecide), c.Hold
			if c.Peek {
				op, hold = opPeek, ""
			}
			q.items = append(q.items, s.item(c, op, hold, i))
			q.groups = append(q.groups, len(q.items))
		}
	}
	q.decisions = append(q.decisions, make([]algorithms.Decision, len(checks))...)
	return nil
}

// each goes through the groups.
func (q *question) each() iter.Seq[[]item] {
	return func(yield func([]item) bool) {
		first := 0
		for _, end := range q.groups {
			if !yield(q.items[first:end]) {
				return
			}
			first = end
		}
	}
}

// charged tells whether a group was charged.
func (q *question) charged(group []item) bool {
	for i := range group {
		if !q.decisions[group[i].index].Allowed {
			return false
		}
	}
	return true
}

// alone makes a question of one check that is not to be decided but renewed or corrected.
func (q *question) alone(i item) {
	q.items = append(q.items, i)
	q.slot = i.slot
	q.groups = append(q.groups, 1)
	q.decisions = append(q.decisions, algorithms.Decision{})
}

// item makes a check ready for the script.
func (s *Store) item(c *store.Check, op byte, hold string, index int) item {
	i := item{
		rule: c.Rule, prepared: c.Rule.At(s.date(c.Rule)), key: s.key(c.Rule.ID(), c.Key),
		cost: c.Cost, hold: hold, op: op, apart: op == opPeek || c.Independent && op == opDecide, index: index,
	}
	if c.KeyRules != nil && (op == opDecide || op == opPeek) {
		i.sanctions = s.sanctions(c)
	}
	if s.slots {
		i.slot = slotOf(i.key)
	}
	return i
}

// corrected makes a correction ready for the script: of the state that was charged, whatever
// the key has by now.
func (s *Store) corrected(c *store.Adjustment) item {
	i := s.item(&c.Check, opCorrect, correction(c), 0)
	if c.Override != "" {
		prepared, states := c.Rule.ChargedBy(c.Override, s.date(c.Rule))
		i.prepared, i.key = prepared, s.key(states.ID, c.Key)
	}
	return i
}

// correction is what the script gets to know of a correction.
func correction(c *store.Adjustment) string {
	b := make([]byte, 0, 24+len(c.Hold))
	for _, n := range [...]int64{c.At, c.Turn, c.Delta} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return string(append(b, c.Hold...))
}
