package redisstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// A node of a Cluster runs a script only for keys of one slot. So a call to a node is
// sorted by slot again: one script call for each, all in one pipeline. What the node
// answers ends each question, be it that another node is to be asked. Whoever asked
// follows that, through the lane of the other node: nobody else waits for it, and nobody
// blames this node for it.

// askSlot has a question whose keys have one slot answered by the node that keeps them.
func (s *Store) askSlot(ctx context.Context, q *question) error {
	l, err := s.topology.lane(ctx, q.slot)
	if err == nil {
		err = l.askNode(ctx, q, false)
	}
	if err == nil || errors.Is(err, store.ErrFull) || errors.Is(err, errLate) { // another node would not have more room or time
		return err
	}
	s.topology.suspect()
	if l == nil || !elsewhere(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout-(time.Since(l.epoch)-q.since))
	defer cancel()
	return s.topology.follow(ctx, q.slot, err, func(to *lane, asking bool) error { return to.askNode(ctx, q, asking) })
}

// askNode has a question answered by a node, unless that is known not to answer.
func (l *lane) askNode(ctx context.Context, q *question, asking bool) error {
	if l.breaker.open.Load() {
		if l.breaker.probed() {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, l.timeout)
			defer cancel()
		}
		if err := l.breaker.refuses(ctx); err != nil {
			return err
		}
	}
	q.again(asking)
	err := l.ask(ctx, q)
	if (redis.IsTryAgainError(err) || isAsk(err)) && q.shared && !q.single {
		// The slot is on its way, and a call can have only keys that are in the same place.
		q.again(asking)
		q.single = true
		err = l.ask(ctx, q)
	}
	if err != nil && !works(err) && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, errLate) {
		l.slot.Store(uint32(q.slot))
		l.connect()
	}
	return err
}

// again makes a question ready to be asked. It may have been answered with a redirection.
func (q *question) again(asking bool) {
	q.asking, q.shared, q.err = asking, false, nil
	q.ended.Store(false)
}

// sendSlots makes a call, unless the node is known not to answer. A node that has answered
// one slot's question is well, and so is one that sends elsewhere.
func (s *Store) sendSlots(ctx context.Context, l *lane, c *call) error {
	begun := l.breaker.now()
	return l.breaker.run(func() (struct{}, error) {
		l.runSlots(ctx, c)
		for _, q := range c.questions {
			if q.err == nil || works(q.err) {
				return struct{}{}, nil
			}
		}
		return l.breaker.judge(begun, c.questions[0].err)
	})
}

// class says which questions can share a script call in a Cluster: those of one slot, and
// while that is on its way, of the same keys.
type class struct {
	slot   uint16
	asking bool
	keys   string
}

func classOf(q *question) class {
	c := class{slot: q.slot, asking: q.asking}
	if q.single {
		var all strings.Builder
		for i := range q.items {
			all.WriteString(q.items[i].key + " ")
		}
		c.keys = all.String()
	}
	return c
}

// runSlots runs the script once for each class of a call's questions, in one pipeline. Each
// question gets its own error.
func (l *lane) runSlots(ctx context.Context, c *call) {
	calls := []*call{c}
	if first := classOf(c.questions[0]); slices.ContainsFunc(c.questions, func(q *question) bool { return classOf(q) != first }) {
		calls = apart(c.questions, classOf)
		defer func() {
			for _, one := range calls {
				one.free()
			}
		}()
	}
	for _, one := range calls {
		for _, q := range one.questions {
			q.shared = len(one.questions) > 1
		}
	}
	if len(calls) == 1 {
		l.end(c, l.evaluate(ctx, c, c.questions[0].asking))
		return
	}
	cmds := make([]*redis.StringCmd, len(calls))
	_, _ = l.pipelined(ctx, func(p redis.Pipeliner) error {
		for i, one := range calls {
			if one.questions[0].asking {
				p.Do(ctx, "asking")
			}
			cmds[i] = l.evalsha(ctx, one)
			if err := p.Process(ctx, cmds[i]); err != nil {
				return err
			}
		}
		return nil
	})
	var again sync.WaitGroup
	for i, one := range calls {
		finish := func(err error) { l.end(one, l.finish(ctx, one, cmds[i], err, one.questions[0].asking)) }
		if err := closedOr(cmds[i].Err()); err != nil {
			again.Go(func() { finish(err) }) // it may be sent once more
		} else {
			finish(nil)
		}
	}
	again.Wait()
}

// end tells the questions of a call what became of it. If all went well, each has its own
// error, if any.
func (l *lane) end(c *call, err error) {
	l.note(err)
	if err == nil {
		return
	}
	for _, q := range c.questions {
		q.err = err
	}
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
