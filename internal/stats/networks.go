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
	*topk.Recent
	address func(key string) netip.Prefix
	end     *time.Timer
}

const (
	// lookedAt is for how long networks are counted after somebody has looked.
	lookedAt = 4 * TopSpan

	// bits4 and bits6 are the prefixes of networks that mostly belong to one owner.
	bits4, bits6 = 24, 48
)

// Look returns the counts, and begins to count if nobody has looked for long. address returns the address in a key.
func (n *Networks) Look(address func(key string) netip.Prefix) *topk.Recent {
	n.mu.Lock()
	defer n.mu.Unlock()
	of := n.counting.Load()
	if of == nil {
		of = &networks{Recent: topk.New(TopSpan), address: address}
		of.end = time.AfterFunc(lookedAt, func() { n.counting.CompareAndSwap(of, nil) })
		n.counting.Store(of)
	}
	of.end.Reset(lookedAt)
	return of.Recent
}

func (n *networks) add(key string, o outcome.Outcome) {
	address := n.address(key)
	bits := bits4
	if address.Addr().Is6() {
		bits = bits6
	}
	if network, err := address.Addr().Prefix(min(bits, address.Bits())); err == nil && address.IsValid() {
		n.Add(string(network.AppendTo(make([]byte, 0, 32))), "", kindOf(o))
	}
}
