// Package multislot is the layer for a Cluster: it divides a request whose keys have several slots.
//
// First all parts are looked at, in parallel, and then one after the other is charged: so what one refuses
// costs nothing in the others, unless another request comes between the two. What was charged by then is given
// back. That cannot undo a turn in a queue, nor all that was taken from a bucket; so these come last, a queue
// behind all others. The part that comes first does not have to be looked at: it is charged at once, if that
// can be undone.
package multislot

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Inner is the layer below. Amid says that a part belongs to a request in which others are decided together.
type Inner interface {
	layer.Layer

	// Slot returns the slot of a check's keys.
	Slot(c *store.Check) uint16

	// TakeSlot is Take for a part, whose keys have one slot.
	TakeSlot(ctx context.Context, checks []store.Check, decisions []algorithms.Decision, amid bool) error
}

// Layer implements [layer.Layer].
type Layer struct {
	Inner

	// GiveBack gets what was charged and is given back. It is for all layers to hear.
	GiveBack func(...store.Adjustment)
}

// Take implements [layer.Layer].
func (l *Layer) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	amid := slices.ContainsFunc(checks, func(c store.Check) bool { return !c.Alone() })
	r := request{l, checks, decisions, amid}
	if r.oneSlot() {
		return r.TakeSlot(ctx, checks, decisions, amid)
	}
	parts := r.split()
	first := slices.IndexFunc(parts, func(p *part) bool { return p.order != orderAlone })
	var others sync.WaitGroup
	for i, p := range parts {
		others.Go(func() {
			if p.order == orderAlone || i == first && p.undoable() {
				p.sent = true
				p.failed = r.TakeSlot(ctx, p.Checks, p.Decisions, amid)
			} else {
				p.failed = r.look(ctx, p)
			}
		})
	}
	others.Wait()
	return r.inTurn(ctx, parts)
}

// request is one that is decided in parts.
type request struct {
	*Layer
	checks    []store.Check
	decisions []algorithms.Decision
	amid      bool // some checks are decided together
}

// part is what one slot has to decide of a request.
type part struct {
	layer.Some
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

// oneSlot reports whether all keys have one slot.
func (r *request) oneSlot() bool {
	c := r.checks
	if !slices.ContainsFunc(c, func(o store.Check) bool { return o.Key != c[0].Key }) {
		return true
	}
	slot := r.Slot(&c[0])
	return !slices.ContainsFunc(c, func(o store.Check) bool { return r.Slot(&o) != slot })
}

// split makes a part of the checks of each slot, in the order in which they are charged. What is decided by
// itself makes parts of its own.
func (r *request) split() (parts []*part) {
	type name struct {
		slot  uint16
		alone bool
	}
	index := make(map[name]*part)
	for i := range r.checks {
		c := &r.checks[i]
		of := name{r.Slot(c), c.Alone()}
		p := index[of]
		if p == nil {
			p = new(part)
			index[of] = p
			parts = append(parts, p)
		}
		p.Add(r.checks, i)
		p.order = max(p.order, orderOf(c))
	}
	slices.SortStableFunc(parts, func(a, b *part) int { return int(a.order - b.order) })
	return parts
}

// inTurn charges those parts one after the other that have not been sent, as long as all
// pass. If one does not, it gives back what the others have charged.
func (r *request) inTurn(ctx context.Context, parts []*part) error {
	pass, err := r.gather(parts...)
	for _, p := range parts {
		if pass && err == nil && !p.sent {
			p.sent = true
			p.failed = r.TakeSlot(ctx, p.Checks, p.Decisions, r.amid)
			pass, err = r.gather(p)
		}
	}
	if !pass && !slices.ContainsFunc(parts, func(p *part) bool { return p.failed != nil && !protocol.IsUnwritten(p.failed) }) {
		for _, p := range parts {
			if p.failed != nil { // it would have passed, and was not charged
				for i := range p.Decisions {
					p.Decisions[i] = algorithms.Decision{Allowed: true}
				}
				p.failed, p.sent = nil, false
			}
		}
		_, err = r.gather(parts...)
	}
	for _, p := range parts {
		if p.failed == nil && p.sent && (err != nil || !pass) {
			r.undo(p, err != nil)
		}
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

// look has a part decided and not charged.
func (r *request) look(ctx context.Context, p *part) error {
	checks := append(slices.Clone(p.Checks), store.Check{Rule: alwaysRefused, Key: p.Checks[0].Key, Cost: 1})
	decisions := make([]algorithms.Decision, len(checks))
	err := r.TakeSlot(ctx, checks, decisions, r.amid)
	if err == nil {
		copy(p.Decisions, decisions)
	}
	return err
}

// undoable reports whether all that the part charges can be given back.
func (p *part) undoable() bool {
	return !slices.ContainsFunc(p.Checks, func(c store.Check) bool {
		_, lossy := c.Rule.Algorithm().(algorithms.Lossy)
		return lossy
	})
}

// gather takes the answers of parts of a request, and reports whether all of them pass. Its
// error is one of a part that was sent, if there is one.
func (r *request) gather(parts ...*part) (pass bool, err error) {
	pass = true
	for _, p := range parts {
		if p.failed != nil {
			if err == nil || errors.Is(err, store.ErrUnavailable) {
				err = p.failed
			}
			continue
		}
		p.Into(r.decisions)
		pass = pass && layer.Pass(p.Checks, p.Decisions)
	}
	return pass, err
}

// undo gives back what a part has charged, and describes the keys without it. What is decided
// by itself is given back only if all is.
func (r *request) undo(p *part, all bool) {
	if !layer.Pass(p.Checks, p.Decisions) {
		return
	}
	for i := range p.Checks {
		c, d := &p.Checks[i], &p.Decisions[i]
		if c.Cost > 0 && d.Allowed && !d.Exempt && !d.Uncharged && !c.Peek && (all || !c.Alone()) {
			r.GiveBack(store.GiveBack(c, d))
			d.Remaining, d.Delay, d.Ahead = min(d.Remaining+c.Cost, d.Quota), 0, 0
		}
	}
	p.Into(r.decisions)
}
