package world

import (
	"fmt"
	"sync"
)

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
	w.refresh()
	w.net.at(e.At+e.For, 0, w.refresh)
}

// refresh has the host be in what is on now.
func (w *world) refresh() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.servers() {
		h.down = false
		for _, o := range holders() {
			o.hold(h, w.on(o.Kind, -1) && (h == w.host || o.sort == unable && w.plan.Layout == Cluster))
		}
	}
}

// holders are the operations that hold hosts in a state, in the order of their names: the last of two that are on says
// what a host answers.
var holders = sync.OnceValue(func() (all []*operation) {
	for s := range sorts {
		for _, o := range kinds(s) {
			if o.hold != nil {
				all = append(all, o)
			}
		}
	}
	return all
})

// meets returns the trouble that a message of an instance meets now, or nil.
func (w *world) meets(kind Kind, instance int) *Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.trouble(kind, instance)
}

func (w *world) on(kind Kind, instance int) bool { return w.trouble(kind, instance) != nil }

func (w *world) trouble(kind Kind, instance int) *Event {
	now := w.net.now()
	for i, t := range w.troubles {
		if t.Kind == kind && (t.Instance < 0 || t.Instance == instance) && now < t.At+t.For {
			return &w.troubles[i]
		}
	}
	return nil
}
