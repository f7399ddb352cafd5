package main

// engine plays events in the order of their times. Its clock is theirs.
type engine struct {
	now   int64 // ns
	heap  []event
	count uint64
}

// event happens at a time. Events of the same time keep their order.
type event struct {
	at    int64
	count uint64
	do    func()
}

func (e event) before(other event) bool {
	return e.at < other.at || e.at == other.at && e.count < other.count
}

// at plans an event.
func (e *engine) at(at int64, do func()) {
	e.count++
	v := event{max(at, e.now), e.count, do}
	h := append(e.heap, v)
	i := len(h) - 1
	for i > 0 {
		above := (i - 1) / 2
		if !v.before(h[above]) {
			break
		}
		h[i] = h[above]
		i = above
	}
	h[i] = v
	e.heap = h
}

// after plans an event for ns from now.
func (e *engine) after(ns int64, do func()) { e.at(e.now+ns, do) }

// run plays all events before the end.
func (e *engine) run(end int64) {
	for len(e.heap) > 0 && e.heap[0].at < end {
		v := e.pop()
		e.now = v.at
		v.do()
	}
	e.now = end
}

func (e *engine) pop() event {
	h := e.heap
	first, n := h[0], len(h)-1
	last := h[n]
	h[n] = event{}
	h = h[:n]
	e.heap = h
	i := 0
	for below := 1; below < n; below = 2*i + 1 {
		if below+1 < n && h[below+1].before(h[below]) {
			below++
		}
		if !h[below].before(last) {
			break
		}
		h[i] = h[below]
		i = below
	}
	if n > 0 {
		h[i] = last
	}
	return first
}
