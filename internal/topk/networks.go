package topk

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Networks counts requests by networks while somebody looks. Otherwise a request looks at one pointer. The zero Networks is ready to use,
// from several goroutines at once.
type Networks struct {
	mu       sync.Mutex // held by who looks
	counting atomic.Pointer[networks]
}

type networks struct {
	*Recent
	address func(key string) netip.Prefix
	end     *time.Timer
}

const (
	// lookedAt is for how many spans networks are counted after somebody has looked.
	lookedAt = 4

	// bits4 and bits6 are the prefixes of networks that mostly belong to one owner.
	bits4, bits6 = 24, 48
)

// Look returns the counts in spans of this length, and begins to count if nobody has looked for long. address returns the address in a key.
func (n *Networks) Look(span time.Duration, address func(key string) netip.Prefix) *Recent {
	n.mu.Lock()
	defer n.mu.Unlock()
	of := n.counting.Load()
	if of == nil {
		of = &networks{Recent: New(span), address: address}
		of.end = time.AfterFunc(lookedAt*span, func() { n.counting.CompareAndSwap(of, nil) })
		n.counting.Store(of)
	}
	of.end.Reset(lookedAt * span)
	return of.Recent
}

// Add counts a request of a key, if somebody looks and it has an address.
func (n *Networks) Add(key string, kind Kind) {
	of := n.counting.Load()
	if of == nil {
		return
	}
	address := of.address(key)
	bits := bits4
	if address.Addr().Is6() {
		bits = bits6
	}
	if network, err := address.Addr().Prefix(min(bits, address.Bits())); err == nil && address.IsValid() {
		of.Recent.Add(string(network.AppendTo(make([]byte, 0, 32))), "", kind, 0)
	}
}
