package stats

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// Watch knows the keys of networks while somebody asks about these. Otherwise a request looks at one pointer.
type Watch struct {
	watching atomic.Pointer[watch]
}

type watch struct {
	topk.Watch
	address func(key string) netip.Prefix
}

// Look returns what knows the keys, and begins to watch if nobody has looked for long. address returns the address in a key.
func (w *Watch) Look(address func(key string) netip.Prefix) *topk.Watch {
	known := w.watching.Load()
	if known == nil {
		begun := &watch{address: address}
		if !w.watching.CompareAndSwap(nil, begun) {
			return w.Look(address)
		}
		w.tend(begun)
		known = begun
	}
	return &known.Watch
}

// Keep forgets all networks but these. If none is left, nothing is watched until the next look.
func (w *Watch) Keep(networks map[netip.Prefix]bool) {
	of := w.watching.Load()
	if of == nil {
		return
	}
	if of.Keep(networks); len(networks) == 0 {
		w.watching.CompareAndSwap(of, nil)
	}
}

// tend forgets networks until nobody asks any longer.
func (w *Watch) tend(of *watch) {
	time.AfterFunc(TopSpan, func() {
		if of.Sweep(time.Now()) {
			w.tend(of)
		} else {
			w.watching.CompareAndSwap(of, nil)
		}
	})
}

func (w *watch) add(key string, o outcome.Outcome) {
	if address := w.address(key); address.IsValid() {
		w.Add(address, kindOf(o) != topk.Requests, time.Now())
	}
}
