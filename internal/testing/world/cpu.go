package world

import (
	"sync"
	"time"
)

// cpu is the processor of an instance. It does one thing after the other, in the order in which it was asked, so what
// comes behind much work waits, while timers run. It does not know of work between two messages.
type cpu struct {
	mu   sync.Mutex
	free time.Duration // when it has done all that it was asked
	busy time.Duration // since when it has had something to do all the time
}

// slice is what the smallest work takes, so that no two goroutines of an instance go on at the same instant.
const slice = time.Microsecond

// work has the processor work for a client or a message, and returns when that is done. Of what comes at the same
// instant, the order says what is first, and not the goroutines. It is asked for only if the processor has to do something else
// first, because a look at the stack takes longer than everything else that a message needs here.
func (in *instance) work(before func() uint64) {
	takes := in.takes()
	in.processor.mu.Lock()
	idle := takes == 0 && in.processor.free <= in.w.net.now()
	in.processor.mu.Unlock()
	if idle {
		return
	}
	order, done := before(), make(chan struct{})
	takes = max(slice, takes) + time.Duration(order%1000) // so that what counts by what it takes falls on no other instant
	in.w.net.at(in.w.net.now(), order, func() {
		in.w.net.at(in.stand(takes), order, func() { close(done) })
	})
	<-done
}

// takes returns how long the processor works now for a client or a message.
func (in *instance) takes() time.Duration {
	d := in.w.plan.Work
	if !in.w.busy {
		return d
	}
	if busy := in.w.meets(Busy, in.number); busy != nil {
		d = max(d, busy.After)
	}
	return d
}

// stand has the processor do nothing else for some time. It returns when that is over.
func (in *instance) stand(d time.Duration) (until time.Duration) {
	in.processor.mu.Lock()
	defer in.processor.mu.Unlock()
	now, p := in.w.net.now(), &in.processor
	if p.free <= now {
		p.busy, p.free = now, now
	}
	if p.free += d; p.free-p.busy > time.Second {
		in.w.history.stalled(Stall{in.number, p.busy, p.free})
	}
	return p.free
}
