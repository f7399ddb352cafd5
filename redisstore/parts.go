package redisstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// A request whose keys have several slots makes a part for each. First all of them are
// looked at, in parallel, and then one after the other is charged: so what one refuses
// costs nothing in the others, unless another request comes between the two. What was
// charged by then is given back. That cannot undo a turn in a queue, nor all that was
// taken from a bucket; so these come last, a queue behind all others. The part that comes
// first need not be looked at: it is charged at once, if that can be undone.

// part is what one slot has to decide of a request.
type part struct {
	*question
	order  order
	asked  bool // it may be charged
	failed error
}

// order is when a part is charged.
type order int

const (
	orderApart  order = iota // by itself, whatever becomes of the others
	orderKey                 // clients have states of their own
	orderBucket              // the same, and not all that is charged can be given back
	orderAll                 // all clients have one
	orderQueue               // a turn cannot be given back
)

// takeSlots decides a question whose keys have several slots.
func (s *Store) takeSlots(ctx context.Context, q *question, checks []store.Check) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	parts := q.split(checks, func(i *item) string { return string([]byte{byte(i.slot >> 8), byte(i.slot)}) })
	first := slices.IndexFunc(parts, func(p *part) bool { return p.order != orderApart })
	var others sync.WaitGroup
	for n, p := range parts {
		others.Go(func() {
			if p.order == orderApart || n == first && p.returns() {
				p.failed = s.askPart(ctx, p, checks)
			} else {
				p.failed = s.look(ctx, p)
			}
		})
	}
	others.Wait()
	return s.inTurn(ctx, q, parts, checks, s.askPart)
}

// inTurn charges those parts one after the other that have not been asked, as long as all
// pass. If one does not, it gives back what the others have charged.
func (s *Store) inTurn(ctx context.Context, q *question, parts []*part, checks []store.Check,
	ask func(context.Context, *part, []store.Check) error,
) error {
	pass, err := q.gather(parts, checks)
	for _, p := range parts {
		if p.asked || err != nil || !pass && p.order != orderApart {
			continue
		}
		p.failed = ask(ctx, p, checks)
		passes, failed := q.gather([]*part{p}, checks)
		pass, err = pass && passes, failed
	}
	if !pass && !slices.ContainsFunc(parts, func(p *part) bool { return p.failed != nil && !isUnwritten(p.failed) }) {
		for _, p := range parts {
			if p.failed != nil { // it would have passed, and was not charged
				p.pass()
				p.failed = nil
			}
		}
		_, err = q.gather(parts, checks)
	}
	for _, p := range parts {
		if p.failed != nil {
			continue // a call may still have it, and write to it
		}
		if p.asked && (err != nil || !pass) {
			s.undo(q, p, checks, err != nil)
		}
		p.free()
	}
	return err
}

// askPart has a part decided and charged.
func (s *Store) askPart(ctx context.Context, p *part, checks []store.Check) error {
	p.asked = true
	err := s.ask(ctx, p.question)
	if p.keys() > 1 && redis.IsTryAgainError(err) {
		return s.takeMoving(ctx, p.question, checks)
	}
	return err
}

// nothing is a limit that refuses all. What is asked together with it is described, and
// not charged.
var nothing = func() *store.Rule {
	rule, err := store.NewRule("", algorithms.TokenBucket{}, algorithms.Limit{Window: time.Second}, 0)
	if err != nil {
		panic(err)
	}
	return rule
}()

// look has a part decided and not charged. Of keys that are on their way to another node
// it finds out nothing: then they are taken to pass.
func (s *Store) look(ctx context.Context, p *part) error {
	q := questions.Get().(*question)
	q.slot = p.slot
	last := len(p.decisions)
	q.items = append(q.items, p.items...)
	q.items = append(q.items, item{
		rule: nothing, prepared: nothing.At(0), key: p.items[0].key + ":", slot: p.slot, cost: 1, op: opDecide, index: last,
	})
	q.groups = append(q.groups, len(q.items))
	q.decisions = append(q.decisions, make([]algorithms.Decision, last+1)...)
	err := s.ask(ctx, q)
	if redis.IsTryAgainError(err) {
		p.pass()
		return nil
	}
	if err == nil {
		copy(p.decisions, q.decisions)
		p.damaged = q.damaged
		q.free()
	}
	return err
}

// pass is the answer of a part that has not been asked.
func (p *part) pass() {
	for i := range p.items {
		p.decisions[p.items[i].index] = algorithms.Decision{Allowed: true}
	}
}

// returns reports whether all that the part charges can be given back.
func (p *part) returns() bool {
	return !slices.ContainsFunc(p.items, func(i item) bool {
		_, lossy := i.rule.Algorithm().(algorithms.Lossy)
		return lossy
	})
}

// gather takes the answers of parts, and reports whether all of them pass. Its error is one
// of a part that was sent, if there is one.
func (q *question) gather(parts []*part, checks []store.Check) (pass bool, err error) {
	pass = true
	for _, p := range parts {
		if p.failed != nil {
			if err == nil || errors.Is(err, store.ErrUnavailable) {
				err = p.failed
			}
			continue
		}
		for i := range p.items {
			index := p.items[i].index
			q.decisions[index] = p.decisions[index]
			if p.items[i].hold == "" { // nothing is to be renewed
				q.items[slices.IndexFunc(q.items, func(i item) bool { return i.index == index })].hold = ""
			}
			pass = pass && (checks[index].Alone() || p.decisions[index].Allowed)
		}
		if p.damaged != nil {
			q.damaged = p.damaged
		}
	}
	return pass, err
}

// undo gives back what a part has charged, and describes the keys without it. What stands
// apart is given back only if all is.
func (s *Store) undo(q *question, p *part, checks []store.Check, all bool) {
	for group := range p.each() {
		if !p.charged(group) || checks[group[0].index].Alone() && !all {
			continue
		}
		for i := range group {
			c, d := &checks[group[i].index], &q.decisions[group[i].index]
			if c.Cost > 0 && !d.Exempt && !c.Peek {
				s.Adjust(store.Adjustment{Check: *c, At: d.Booked(), Turn: d.Turn(), Delta: -c.Cost, Override: d.Override})
				d.Remaining, d.Delay, d.Ahead = min(d.Remaining+c.Cost, d.Quota), 0, 0
			}
		}
	}
}

// keys is how many keys the question has, or at least that there are several.
func (q *question) keys() int {
	if len(q.items) == 1 && q.items[0].sanctions != nil {
		return 2
	}
	return len(q.items)
}

// oneSlot tells whether all keys have one slot, and notes it.
func (q *question) oneSlot() bool {
	q.slot = q.items[0].slot
	return !slices.ContainsFunc(q.items, func(i item) bool { return i.slot != q.slot })
}

// split makes a part of the items of each class, in the order in which they are charged.
// What stands apart makes parts of its own.
func (q *question) split(checks []store.Check, class func(*item) string) (parts []*part) {
	index := make(map[string]*part)
	for group := range q.each() {
		for i := range group {
			c := &checks[group[i].index]
			name := class(&group[i])
			if c.Alone() {
				name += " apart"
			}
			p := index[name]
			if p == nil {
				p = &part{question: questions.Get().(*question)}
				p.slot, p.dry = group[i].slot, q.dry
				p.decisions = append(p.decisions, make([]algorithms.Decision, len(q.decisions))...)
				index[name] = p
				parts = append(parts, p)
			}
			p.items = append(p.items, group[i])
			p.order = max(p.order, orderOf(c))
		}
		for _, p := range parts {
			if n := len(p.groups); n == 0 || p.groups[n-1] < len(p.items) {
				p.groups = append(p.groups, len(p.items))
			}
		}
	}
	slices.SortStableFunc(parts, func(a, b *part) int { return int(a.order - b.order) })
	return parts
}

func orderOf(c *store.Check) order {
	_, lossy := c.Rule.Algorithm().(algorithms.Lossy)
	switch {
	case c.Alone():
		return orderApart
	case c.Rule.Limit().Mode == algorithms.ModeQueue:
		return orderQueue
	case c.Key == "":
		return orderAll
	case lossy:
		return orderBucket
	}
	return orderKey
}
