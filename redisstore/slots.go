package redisstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// A node of a Cluster runs a script only for keys of one slot. So a request whose keys
// have several makes a part for each, and these go out in parallel; and the parts that
// meet in a node's lane are sorted by slot again, one script call for each, all in one
// pipeline.

// part is what one slot has to decide of a request.
type part struct {
	*question
	failed error
}

// takeSlots decides a question whose keys may have several slots. If one part refuses,
// what the others have charged is given back.
func (s *Store) takeSlots(ctx context.Context, q *question, checks []store.Check) error {
	parts := q.split(func(i *item) string { return string([]byte{byte(i.slot >> 8), byte(i.slot)}) })
	s.askAll(ctx, parts)
	// The keys of a slot on its way may be at two nodes, and none then has them all. So a
	// key's state is asked for without what is beside it: its limit holds meanwhile.
	var single []*part
	parts = slices.DeleteFunc(parts, func(p *part) bool {
		again := p.keys() > 1 && redis.IsTryAgainError(p.failed)
		if again {
			single = append(single, p.split(func(i *item) string { return i.key })...)
		}
		return again
	})
	for _, p := range single {
		for i := range p.items {
			p.items[i].sanctions = nil
		}
	}
	s.askAll(ctx, single)
	parts = append(parts, single...)

	var err error
	pass := true
	for _, p := range parts {
		if p.failed != nil && (err == nil || errors.Is(err, store.ErrUnavailable)) {
			err = p.failed // of those that were sent, if any
		}
		if p.failed != nil {
			continue // a call may still have it, and write to it
		}
		for i := range p.items {
			index := p.items[i].index
			q.decisions[index] = p.decisions[index]
			pass = pass && (checks[index].Apart || p.decisions[index].Allowed)
		}
		if p.damaged != nil {
			q.damaged = p.damaged
		}
	}
	for _, p := range parts {
		if p.failed != nil {
			continue
		}
		if err != nil || !pass {
			s.undo(q, p, checks, err != nil)
		}
		p.free()
	}
	return err
}

// undo gives back what a part has charged, and describes the keys without it. What stands
// apart is given back only if all is.
func (s *Store) undo(q *question, p *part, checks []store.Check, all bool) {
	for group := range p.each() {
		if !p.charged(group) || checks[group[0].index].Apart && !all {
			continue
		}
		for i := range group {
			c, d := &checks[group[i].index], &q.decisions[group[i].index]
			if c.Cost > 0 && !d.Exempt {
				s.Settle(store.Correction{Check: *c, At: d.At, Turn: d.Turn(), Delta: -c.Cost})
				d.Remaining, d.Delay = min(d.Remaining+c.Cost, d.Quota), 0
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

// split makes a question of the items of each class. What is to be decided together
// stays so within each.
func (q *question) split(class func(*item) string) (parts []*part) {
	index := make(map[string]*part)
	first := 0
	for _, end := range q.groups {
		for i := first; i < end; i++ {
			name := class(&q.items[i])
			p := index[name]
			if p == nil {
				p = &part{question: questions.Get().(*question)}
				p.slot, p.dry = q.items[i].slot, q.dry
				p.decisions = append(p.decisions, make([]algorithms.Decision, len(q.decisions))...)
				index[name] = p
				parts = append(parts, p)
			}
			p.items = append(p.items, q.items[i])
		}
		for _, p := range parts {
			if n := len(p.groups); n == 0 || p.groups[n-1] < len(p.items) {
				p.groups = append(p.groups, len(p.items))
			}
		}
		first = end
	}
	return parts
}

// askAll asks in parallel. Each part has its error.
func (s *Store) askAll(ctx context.Context, parts []*part) {
	if len(parts) == 0 {
		return
	}
	var others sync.WaitGroup
	for _, p := range parts[1:] {
		others.Go(func() { p.failed = s.ask(ctx, p.question) })
	}
	parts[0].failed = s.ask(ctx, parts[0].question)
	others.Wait()
}

// sendSlots makes a call, unless the node is known not to answer. A node that has answered
// one slot's question is well, and so is one that sends elsewhere.
func (s *Store) sendSlots(ctx context.Context, l *lane, c *call) error {
	return l.breaker.run(func() (struct{}, error) {
		s.runSlots(ctx, l, c)
		for _, q := range c.questions {
			if q.err == nil || redis.IsTryAgainError(q.err) {
				return struct{}{}, nil
			}
		}
		return struct{}{}, c.questions[0].err
	})
}

// runSlots runs the script once for each slot of a call, in one pipeline. Each question
// gets its own error.
func (s *Store) runSlots(ctx context.Context, l *lane, c *call) {
	slot := c.questions[0].slot
	if !slices.ContainsFunc(c.questions, func(q *question) bool { return q.slot != slot }) {
		s.runSlot(ctx, l, c, l.evalsha(ctx, c), nil)
		return
	}
	slices.SortStableFunc(c.questions, func(a, b *question) int { return cmp.Compare(a.slot, b.slot) })
	calls := apart(c.questions, func(q *question) uint16 { return q.slot })
	cmds := make([]*redis.StringCmd, len(calls))
	_, _ = l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, one := range calls {
			cmds[i] = l.evalsha(ctx, one)
			if err := p.Process(ctx, cmds[i]); err != nil {
				return err
			}
		}
		return nil
	})
	var wait sync.WaitGroup
	for i, one := range calls {
		if cmds[i].Err() == nil {
			s.runSlot(ctx, l, one, nil, cmds[i])
			one.free()
			continue
		}
		wait.Go(func() {
			s.runSlot(ctx, l, one, nil, cmds[i])
			one.free()
		})
	}
	wait.Wait()
}

// runSlot brings a call for one slot to its end: sends the command, unless it was sent,
// and goes where the nodes say.
func (s *Store) runSlot(ctx context.Context, l *lane, c *call, unsent, sent *redis.StringCmd) {
	var err error
	if unsent != nil {
		err = l.finish(ctx, c, unsent, l.process(ctx, unsent, false), false)
	} else {
		err = l.finish(ctx, c, sent, closedOr(sent.Err()), false)
	}
	if _, ask := redis.IsAskError(err); (ask || redis.IsTryAgainError(err)) && len(c.keys) > 1 {
		// The slot is on its way, and a call can have only keys that are in the same place.
		if s.runKeys(ctx, l, c) {
			return
		}
	}
	err = s.topology.follow(ctx, c.questions[0].slot, err, func(to *lane, asking bool) error {
		return to.evaluate(ctx, c, asking)
	})
	if err == nil {
		return // each has its own, if any
	}
	for _, q := range c.questions {
		q.err = err
	}
}

// runKeys makes calls of those questions that have the same keys. It returns false if all
// have.
func (s *Store) runKeys(ctx context.Context, l *lane, c *call) bool {
	keys := func(q *question) string {
		var all strings.Builder
		for i := range q.items {
			all.WriteString(q.items[i].key + " ")
		}
		return all.String()
	}
	calls := apart(c.questions, keys)
	if len(calls) == 1 {
		calls[0].free()
		return false
	}
	var wait sync.WaitGroup
	for _, one := range calls {
		wait.Go(func() {
			s.runSlot(ctx, l, one, l.evalsha(ctx, one), nil)
			one.free()
		})
	}
	wait.Wait()
	return true
}

// apart makes a call of the questions of each class, in their order.
func apart[C comparable](all []*question, class func(*question) C) (calls []*call) {
	index := make(map[C]*call)
	for _, q := range all {
		name := class(q)
		c := index[name]
		if c == nil {
			c = newCall()
			index[name] = c
			calls = append(calls, c)
		}
		c.add(q)
	}
	return calls
}
