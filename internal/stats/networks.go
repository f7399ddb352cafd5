package stats

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// Networks counts the requests of a zone by networks while somebody looks. Otherwise a request looks at one pointer.
type Networks struct {
	mu       sync.Mutex // held by who looks
	counting atomic.Pointer[networks]
}

type networks struct {
	*topk.Networks
	address func(key string) netip.Prefix
	end     *time.Timer
}

// lookedAt is for how long networks are counted after somebody has looked.
const lookedAt = 4 * TopSpan

// Look returns the counts, and begins to count if nobody has looked for long. address returns the address in a key.
func (n *Networks) Look(address func(key string) netip.Prefix) *topk.Networks {
	n.mu.Lock()
	defer n.mu.Unlock()
	of := n.counting.Load()
	if of == nil {
		of = &networks{Networks: topk.NewNetworks(TopSpan), address: address}
		of.end = time.AfterFunc(lookedAt, func() { n.counting.CompareAndSwap(of, nil) })
		n.counting.Store(of)
	}
	of.end.Reset(lookedAt)
	return of.Networks
}

func (n *networks) add(key string, o outcome.Outcome) {
	if address := n.address(key); address.IsValid() {
		n.Add(address, kindOf(o))
	}
}
