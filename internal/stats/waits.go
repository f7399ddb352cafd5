package stats

import (
	"sync/atomic"
	"time"
)

// MaxClasses is how many classes an adaptive zone may have. Each free slot looks at all of them.
const MaxClasses = 9

// Waits are the times for which requests of an adaptive zone have waited for a slot, by class, whether they got it or
// not. The zero Waits has none and is ready to use.
type Waits struct {
	classes [MaxClasses]atomic.Pointer[Histogram]
}

// Observe adds the wait of a request.
func (w *Waits) Observe(class int, d time.Duration) { w.Of(class).Observe(d) }

// Of returns the waits of a class.
func (w *Waits) Of(class int) *Histogram {
	at := &w.classes[class]
	if at.Load() == nil {
		at.CompareAndSwap(nil, new(Histogram))
	}
	return at.Load()
}
