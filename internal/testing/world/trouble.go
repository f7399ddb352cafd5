package world

import (
	"fmt"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/simredis"
)

// begin has a trouble begin. Like all that changes a host, it is called by the network's goroutine.
func (w *world) begin(i int, e Event) {
	e.At = w.net.now()
	w.history.note(e.At, fmt.Sprintf("trouble: %s for %v at %d, %v", e.Kind, e.For, e.Instance, e.After))
	w.mu.Lock()
	w.troubles = append(w.troubles, e)
	w.mu.Unlock()
	h := w.host
	switch e.Kind {
	case Freeze:
		h.free = max(h.free, e.At+e.For)
	case Restart:
		h.breakAll(errReset)
		h.redis.Restart()
		w.history.lost(0, e.At)
	case Failover:
		h.breakAll(errReset)
		h.redis.Restart()
		h.redis.Copy(w.before[i])
		w.history.lost(e.At-e.After, e.At)
	case Demote:
		next := newHost(w)
		next.offset, next.number = h.offset, h.number+1
		next.redis.Copy(h.redis)
		h.demoted = true
		w.mu.Lock()
		w.host = next
		w.mu.Unlock()
	case Step:
		h.offset += e.After
		w.history.clocked(e.At, h.offset)
		w.history.lost(0, e.At) // what was charged may count for less, or come back sooner
	}
	w.refresh()
	w.net.at(e.At+e.For, 0, w.refresh)
}

// refresh has the host be in what is on now.
func (w *world) refresh() {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.host
	h.down = w.on(Restart, -1) || w.on(Failover, -1)
	r := h.redis
	r.Full, r.Readonly, r.Alone, r.Unsaved = w.on(Full, -1), w.on(Readonly, -1), w.on(NoReplicas, -1), w.on(Unsaved, -1)
	r.Forbidden = nil
	if w.on(Forbid, -1) {
		r.Forbidden = map[string]bool{"SET": true, "SETRANGE": true, "RPUSH": true, "ZADD": true}
	}
}

// remember keeps what a failover will come back with.
func (w *world) remember(event int) {
	s := simredis.New(w.host.clock)
	s.Copy(w.host.redis)
	w.before[event] = s
}

// meets reports whether a message of an instance meets a trouble now.
func (w *world) meets(kind Kind, instance int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.on(kind, instance)
}

func (w *world) on(kind Kind, instance int) bool {
	now := w.net.now()
	for _, t := range w.troubles {
		if t.Kind == kind && (t.Instance < 0 || t.Instance == instance) && now < t.At+t.For {
			return true
		}
	}
	return false
}
