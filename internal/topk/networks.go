package topk

import (
	"cmp"
	"hash/maphash"
	"net/netip"
	"slices"
	"time"
)

// The levels of prefixes that are counted. A network that is heavy because of a part of it is told from that part by
// [NetworkCount].Own.
var (
	levels4 = []int{32, 28, 24, 20, 16, 12, 8}
	levels6 = []int{64, 56, 48, 40, 32}
	levels  = [2][]int{levels4, levels6}
)

// Networks counts requests by the networks of their addresses, on all levels at once. It is for a time in which somebody looks:
// a request costs about as much as the rest of its decision. It may be used from several goroutines at once.
type Networks struct {
	spans[networkLevels]
	seed maphash.Seed
}

// networkLevels has a level for each length of prefixes, of IPv4 and IPv6.
type networkLevels [2][7]level[netip.Prefix]

// NewNetworks makes Networks that count in spans of this length.
func NewNetworks(span time.Duration) *Networks {
	n := &Networks{seed: maphash.MakeSeed()}
	n.begin(span)
	return n
}

// Add counts a request of a key that is an address or a network.
func (n *Networks) Add(key netip.Prefix, refused bool) {
	hash, of := maphash.Comparable(n.seed, key), family(key)
	n.add(func(counts *networkLevels) {
		for i, bits := range levels[of] {
			if bits > key.Bits() {
				continue
			}
			if network, err := key.Addr().Prefix(bits); err == nil {
				counts[of][i].add(network, hash, refused, asItIs)
			}
		}
	})
}

// NetworkCount is a network with many requests.
type NetworkCount struct {
	Network netip.Prefix
	Heavy

	// Own are the requests that are in no network within it that is listed, too: at most so many.
	Own uint64
}

// Top returns the networks with at least this share of all requests, from 0.002 to 1, without those of larger ones only because
// of networks within them. A network that is not listed has at most that many own requests. It also returns how many requests
// there were, and since when they were counted.
func (n *Networks) Top(share float64) (top []NetworkCount, total uint64, since time.Time) {
	v := n.look(share)
	for family := range levels {
		var listed []NetworkCount // by length of prefix, the longest first
		for i := range levels[family] {
			at := func(all []*networkLevels) (these []*level[netip.Prefix]) {
				for _, counts := range all {
					these = append(these, &counts[family][i])
				}
				return these
			}
			for _, h := range sum(at(v.now), at(v.before), netip.Prefix.Compare) {
				c := NetworkCount{Network: h.of, Heavy: h.Heavy}
				if c.Own = c.own(listed); c.Own >= v.least {
					listed = append(listed, c)
				}
			}
		}
		top = append(top, listed...)
	}
	slices.SortStableFunc(top, func(a, b NetworkCount) int { return cmp.Compare(b.Own, a.Own) })
	return top, v.total, v.since
}

// own returns how many requests of a network are, at most, in none of those that are listed.
func (c *NetworkCount) own(listed []NetworkCount) uint64 {
	own := c.Requests.AtLeast + c.Requests.Error
	var within []netip.Prefix
	for _, other := range slices.Backward(listed) { // larger ones first
		p := other.Network
		if c.Network.Contains(p.Addr()) && !slices.ContainsFunc(within, func(larger netip.Prefix) bool { return larger.Contains(p.Addr()) }) {
			within = append(within, p)
			own -= min(own, other.Requests.AtLeast)
		}
	}
	return own
}
