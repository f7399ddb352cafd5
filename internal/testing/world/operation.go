package world

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Kind is what an event is: the name of an operation.
type Kind string

// operation is a kind of what happens in a world. A new ability of the product joins with a file that has its
// operations, each made by [operate], and with what must hold then, which joins the [promises].
type operation struct {
	Kind
	sort sort

	// often is how many of ten operations of this sort are of this kind, roughly. 0 is as 1.
	often int

	// fits reports whether there can be such an event in a plan; nil: always.
	fits func(p *Plan) bool

	// draw draws the rest of an event, which has a time, and a length (of a trouble) or an instance (of others); nil: there is nothing else.
	draw func(r *rand.Rand, p *Plan, e *Event, length time.Duration)

	// ask carries out an event on a goroutine of its own: somebody asks an instance, and waits for the answer.
	ask func(w *world, i int, e *Event)

	// begin carries out an event on the network's goroutine, which alone may change hosts; nil: nothing happens at
	// once. The event then is on for its length: see meets.
	begin func(w *world, i int, e *Event)

	// tells are the kinds of failures that requests may meet after such an event.
	tells []string
}

// sort is what kinds have in common. A world has troubles of one sort, of all, or none.
type sort int

const (
	requests  sort = iota // clients
	operators             // people and their tools
	links                 // messages get lost or late
	servers               // Redis stops, or another one takes its place
	unable                // Redis answers, and does not do it
	clocks                // clocks step
	machines              // instances stop
	sorts                 // how many there are
)

// trouble reports whether it is a fault, and not what users do.
func (s sort) trouble() bool { return s > operators }

// on is what fits plans with some layouts.
func on(layouts ...Layout) func(p *Plan) bool {
	return func(p *Plan) bool { return slices.Contains(layouts, p.Layout) }
}

// operations are all that there are, by kind.
var operations = make(map[Kind]*operation)

// operate adds an operation.
func operate(o operation) *operation {
	if operations[o.Kind] != nil {
		panic("two operations are named " + o.Kind)
	}
	operations[o.Kind] = &o
	return &o
}

// kinds returns the operations of some sorts, in the order of their names.
func kinds(of ...sort) (all []*operation) {
	for _, o := range operations {
		if slices.Contains(of, o.sort) {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b *operation) int { return cmp.Compare(a.Kind, b.Kind) })
	return all
}

// event draws an event of one of some sorts.
func (p *Plan) event(r *rand.Rand, length time.Duration, of ...sort) Event {
	var among []*operation
	for _, o := range kinds(of...) {
		if o.fits == nil || o.fits(p) {
			among = append(among, slices.Repeat([]*operation{o}, max(1, o.often))...)
		}
	}
	o := among[r.IntN(len(among))]
	e := Event{At: between(r.Uint64(), 0, length), Kind: o.Kind, Instance: r.IntN(p.Instances)}
	if o.sort.trouble() {
		e.Instance, e.For = -1, between(r.Uint64(), 0, length/2)
	}
	if o.draw != nil {
		o.draw(r, p, &e, length)
	}
	return e
}

// begin has a trouble begin. Like all that changes a host, it is called by the network's goroutine.
func (w *world) begin(i int, e Event) {
	e.At = w.net.now()
	w.history.note(e.At, fmt.Sprintf("trouble: %s for %v at %d, %v", e.Kind, e.For, e.Instance, e.After))
	w.mu.Lock()
	w.troubles = append(w.troubles, e)
	w.mu.Unlock()
	if do := operations[e.Kind].begin; do != nil {
		do(w, i, &e)
	}
}

// meets returns the trouble that a message of an instance meets now, or nil.
func (w *world) meets(kind Kind, instance int) *Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.net.now()
	for i, t := range w.troubles {
		if t.Kind == kind && (t.Instance < 0 || t.Instance == instance) && now < t.At+t.For {
			return &w.troubles[i]
		}
	}
	return nil
}
