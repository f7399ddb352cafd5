package main

import (
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/gate"
)

// fifo is one queue for all keys, the oldest first. Gates without fair shares have it.
type fifo struct {
	limit   int
	waiting []*gate.Place
	running map[*gate.Place]bool
}

func (f *fifo) Enter(_ int64, p *gate.Place, _ uint64, _ int) bool {
	if len(f.running) >= f.limit {
		f.waiting = append(f.waiting, p)
		return false
	}
	f.running[p] = true
	return true
}

func (f *fifo) Leave(_ int64, p *gate.Place) bool {
	f.waiting = slices.DeleteFunc(f.waiting, func(other *gate.Place) bool { return other == p })
	return f.running[p]
}

// Hold holds nothing, as other limits do.
func (f *fifo) Hold(int64, *gate.Place) time.Duration { return 0 }

func (f *fifo) Done(_ int64, p *gate.Place, _ gate.Answer) {
	delete(f.running, p)
	for len(f.waiting) > 0 && len(f.running) < f.limit {
		next := f.waiting[0]
		f.waiting = f.waiting[1:]
		f.running[next] = true
		next.Notify(true)
	}
}
