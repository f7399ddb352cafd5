package stats

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// Networks counts the requests of a zone by networks while somebody looks. Otherwise a request looks at one pointer.
type Networks struct {
	counting atomic.Pointer[networks]
}

type networks struct {
	*topk.Networks
	address func(key string) netip.Prefix
}

// Look returns the counts, and begins to count if nobody has looked for long. address returns the address in a key.
func (n *Networks) Look(address func(key string) netip.Prefix) *topk.Networks {
	for {
		if known := n.counting.Load(); known != nil {
			return known.Networks
		}
		if begun := (&networks{topk.NewNetworks(TopSpan), address}); n.counting.CompareAndSwap(nil, begun) {
			n.tend(begun)
			return begun.Networks
		}
	}
}

// tend begins new spans of time until nobody looks any longer.
func (n *Networks) tend(of *networks) {
	time.AfterFunc(TopSpan, func() {
		if of.Rotate(time.Now()) {
			n.tend(of)
		} else {
			n.counting.Store(nil)
		}
	})
}

func (n *networks) add(key string, o outcome.Outcome) {
	if address := n.address(key); address.IsValid() {
		n.Add(address, kindOf(o) != topk.Requests)
	}
}
