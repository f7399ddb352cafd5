package stats

import (
	"sync/atomic"
	"time"
)

// onDemand counts while somebody looks. Otherwise a request looks at one pointer.
type onDemand[C interface{ Rotate(now time.Time) bool }] struct {
	counting atomic.Pointer[C]
}

// look returns what counts. It begins to count if nothing does, or nothing that is wanted.
func (d *onDemand[C]) look(begin func() C, wanted func(C) bool) C {
	known := d.counting.Load()
	if known != nil && wanted(*known) {
		return *known
	}
	begun := begin()
	if !d.counting.CompareAndSwap(known, &begun) {
		return d.look(begin, wanted)
	}
	d.tend(&begun)
	return begun
}

// tend begins new spans of time until nobody looks any longer.
func (d *onDemand[C]) tend(of *C) {
	time.AfterFunc(TopSpan, func() {
		switch {
		case d.counting.Load() != of:
		case (*of).Rotate(time.Now()):
			d.tend(of)
		default:
			d.counting.CompareAndSwap(of, nil)
		}
	})
}
