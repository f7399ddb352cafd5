package stats

import (
	"net/netip"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// Networks counts the requests of a zone by networks while somebody looks.
type Networks struct{ onDemand[*networks] }

type networks struct {
	*topk.Networks
	address func(key string) netip.Prefix
}

// Look returns the counts, and begins to count if nobody has looked for long. address returns the address in a key.
func (n *Networks) Look(address func(key string) netip.Prefix) *topk.Networks {
	return n.look(func() *networks { return &networks{topk.NewNetworks(TopSpan), address} }, func(*networks) bool { return true }).Networks
}

func (n *networks) add(key string, o outcome.Outcome) {
	if address := n.address(key); address.IsValid() {
		n.Add(address, kindOf(o) != topk.Requests)
	}
}
