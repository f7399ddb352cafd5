package redisstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// A request whose keys have several slots makes a part for each. First all of them are
// looked at, in parallel, and then one after the other is charged: so what one refuses
// costs nothing in the others, unless another request comes between the two. What was
// charged by then is given back. That cannot undo a turn in a queue, nor all that was
// taken from a bucket; so these come last, a queue behind all others. The part that comes
// first does not have to be looked at: it is charged at once, if that can be undone.

// part is what one slot has to decide of a request.
type part struct {
	*node.Request
	order  order
	sent   bool // it may be charged
	failed error
}

// order is when a part is charged.
type order int

const (
	orderAlone  order = iota // by itself, whatever happens to the others
	orderKey                 // clients have states of their own
	orderBucket              // the same, and not all that is charged can be given back
	orderAll                 // all clients have one
	orderQueue               // a turn cannot be given back
)

// sendParts has a request answered whose keys have several slots.
func (s *Store) sendParts(ctx context.Context, r *node.Request, checks []store.Check) error {
	parts := s.split(r, checks, func(o *protocol.Op) string { return string([]byte{byte(o.Slot >> 8), byte(o.Slot)}) })
	first := slices.IndexFunc(parts, func(p *part) bool { return p.order != orderAlone })
	var others sync.WaitGroup
	for i, p := range parts {
		others.Go(func() {
			if p.order == orderAlone || i == first && p.undoable() {
				p.failed = s.sendPart(ctx, p, checks)
			} else {
				p.failed = s.look(ctx, p)
			}
		})
	}
	others.Wait()
	return s.sendInTurn(ctx, r, parts, checks, s.sendPart)
}

// sendInTurn charges those parts one after the other that have not been sent, as long as all
// pass. If one does not, it gives back what the others have charged.
func (s *Store) sendInTurn(ctx context.Context, r *node.Request, parts []*part, checks []store.Check,
	send func(context.Context, *part, []store.Check) error,
) error {
	pass, err := gather(r, parts, checks)
	for _, p := range parts {
		if p.sent || err != nil || !pass && p.order != orderAlone {
			continue
		}
		p.failed = send(ctx, p, checks)
		passes, failed := gather(r, []*part{p}, checks)
		pass, err = pass && passes, failed
	}
	if !pass && !slices.ContainsFunc(parts, func(p *part) bool { return p.failed != nil && !protocol.IsUnwritten(p.failed) }) {
		for _, p := range parts {
			if p.failed != nil { // it would have passed, and was not charged
				p.assumePass()
				p.failed = nil
			}
		}
		_, err = gather(r, parts, checks)
	}
	for _, p := range parts {
		if p.failed != nil {
			continue // a call may still have it, and write to it
		}
		if p.sent && (err != nil || !pass) {
			s.undo(r, p, checks, err != nil)
		}
		s.free(p.Request)
	}
	return err
}

// sendPart has a part decided and charged.
func (s *Store) sendPart(ctx context.Context, p *part, checks []store.Check) error {
	p.sent = true
	err := s.send(ctx, p.Request)
	if severalKeys(p.Request) && redis.IsTryAgainError(err) {
		return s.sendByKey(ctx, p.Request, checks)
	}
	return err
}

// alwaysRefused is a limit that refuses all. Checks that are sent together with it are
// decided and count towards bans, but are not charged.
var alwaysRefused = func() *store.Rule {
	rule, err := store.NewRule("", algorithms.TokenBucket{}, algorithms.Limit{Window: time.Second}, 0)
	if err != nil {
		panic(err)
	}
	return rule
}()

// look has a part decided and not charged. Of keys that are on their way to another node
// it finds out nothing: then they are taken to pass.
func (s *Store) look(ctx context.Context, p *part) error {
	r := s.newRequest()
	r.Slot = p.Slot
	last := len(p.Decisions)
	r.Ops = append(r.Ops, p.Ops...)
	r.Ops = append(r.Ops, protocol.Op{
		Rule: alwaysRefused, Prepared: alwaysRefused.At(0), Key: p.Ops[0].Key + ":", Slot: p.Slot, Cost: 1, Kind: protocol.Decide, Index: last,
	})
	r.EndGroup()
	r.Expect(last + 1)
	err := s.send(ctx, r)
	if redis.IsTryAgainError(err) {
		p.assumePass()
		return nil
	}
	if err == nil {
		copy(p.Decisions, r.Decisions)
		p.Damaged = r.Damaged
		s.free(r)
	}
	return err
}

// assumePass is the answer of a part that has not been sent.
func (p *part) assumePass() {
	for i := range p.Ops {
		p.Decisions[p.Ops[i].Index] = algorithms.Decision{Allowed: true}
	}
}

// undoable reports whether all that the part charges can be given back.
func (p *part) undoable() bool {
	return !slices.ContainsFunc(p.Ops, func(o protocol.Op) bool {
		_, lossy := o.Rule.Algorithm().(algorithms.Lossy)
		return lossy
	})
}

// gather takes the answers of parts of a request, and reports whether all of them pass. Its
// error is one of a part that was sent, if there is one.
func gather(r *node.Request, parts []*part, checks []store.Check) (pass bool, err error) {
	pass = true
	for _, p := range parts {
		if p.failed != nil {
			if err == nil || errors.Is(err, store.ErrUnavailable) {
				err = p.failed
			}
			continue
		}
		for i := range p.Ops {
			index := p.Ops[i].Index
			r.Decisions[index] = p.Decisions[index]
			if p.Ops[i].Hold == "" { // nothing is to be renewed
				r.Ops[slices.IndexFunc(r.Ops, func(o protocol.Op) bool { return o.Index == index })].Hold = ""
			}
			pass = pass && (checks[index].Alone() || p.Decisions[index].Allowed)
		}
		if p.Damaged != nil {
			r.Damaged = p.Damaged
		}
	}
	return pass, err
}

// undo gives back what a part has charged, and describes the keys without it. What is decided
// by itself is given back only if all is.
func (s *Store) undo(r *node.Request, p *part, checks []store.Check, all bool) {
	for group := range p.Groups() {
		if !p.Charged(group) || checks[group[0].Index].Alone() && !all {
			continue
		}
		for i := range group {
			c, d := &checks[group[i].Index], &r.Decisions[group[i].Index]
			if c.Cost > 0 && !d.Exempt && !c.Peek {
				s.Adjust(store.Adjustment{Check: *c, At: d.Booked(), Turn: d.Turn(), Delta: -c.Cost, Override: d.Override})
				d.Remaining, d.Delay, d.Ahead = min(d.Remaining+c.Cost, d.Quota), 0, 0
			}
		}
	}
}

// split makes a part of the operations of each class, in the order in which they are charged.
// What is decided by itself makes parts of its own.
func (s *Store) split(r *node.Request, checks []store.Check, class func(*protocol.Op) string) (parts []*part) {
	index := make(map[string]*part)
	for group := range r.Groups() {
		for i := range group {
			c := &checks[group[i].Index]
			name := class(&group[i])
			if c.Alone() {
				name += " alone"
			}
			p := index[name]
			if p == nil {
				p = &part{Request: s.newRequest()}
				p.Slot, p.AllAlone = group[i].Slot, r.AllAlone
				p.Expect(len(r.Decisions))
				index[name] = p
				parts = append(parts, p)
			}
			p.Ops = append(p.Ops, group[i])
			p.order = max(p.order, orderOf(c))
		}
		for _, p := range parts {
			p.EndGroup()
		}
	}
	slices.SortStableFunc(parts, func(a, b *part) int { return int(a.order - b.order) })
	return parts
}

func orderOf(c *store.Check) order {
	_, lossy := c.Rule.Algorithm().(algorithms.Lossy)
	switch {
	case c.Alone():
		return orderAlone
	case c.Rule.Limit().Mode == algorithms.ModeQueue:
		return orderQueue
	case c.Key == "":
		return orderAll
	case lossy:
		return orderBucket
	}
	return orderKey
}
