package main

import "github.com/seed-161337e5/caddyratelimit/internal/gate"

// fifo is one queue for all keys, the oldest first. Gates without fair shares have it.
type fifo struct {
	limit   gate.Limiter
	waiting []*gate.Place
	running map[*gate.Place]int64 // since when
}

func (f *fifo) Arrive(now int64, p *gate.Place, _ uint64, _ int) bool {
	f.step(now)
	defer f.step(now)
	if len(f.waiting) == 0 && len(f.running) < f.limit.N() {
		f.running[p] = now
		return true
	}
	f.waiting = append(f.waiting, p)
	return false
}

func (f *fifo) Leave(now int64, p *gate.Place) bool {
	for i, other := range f.waiting {
		if other == p {
			f.waiting = append(f.waiting[:i], f.waiting[i+1:]...)
			f.step(now)
			return true
		}
	}
	return false
}

// Hold holds nothing, as other limits do.
func (f *fifo) Hold(int64, *gate.Place) int64 { return 0 }

func (f *fifo) Done(now int64, p *gate.Place, a gate.Answer) {
	since, ok := f.running[p]
	if !ok {
		return
	}
	f.step(now)
	f.limit.Done(now, now-since, a)
	delete(f.running, p)
	for len(f.waiting) > 0 && len(f.running) < f.limit.N() {
		next := f.waiting[0]
		f.waiting = f.waiting[1:]
		f.running[next] = now
		next.Notify(true)
	}
	f.step(now)
}

func (f *fifo) step(now int64) { f.limit.Step(now, len(f.running), len(f.waiting)) }
