package topk

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"time"
)

// The levels of prefixes that are counted. A network that is heavy because of a part of it is told from that part by
// [NetworkCount].Own.
var levels = [2][]int{{32, 28, 24, 20, 16, 12, 8}, {64, 56, 48, 40, 32}}

const (
	// widest is the shortest prefix of a network that replaces those within it. Larger ones belong to several owners.
	widest = 16

	// several is in how many parts of a network, of mostly 16, its requests are spread all over it.
	several = 8

	// fewest is how many requests a listed network has at least. Fewer say nothing, as when counting has just begun.
	fewest = 10
)

// Networks counts requests by the networks of their addresses, on all levels at once. It is for a time in which somebody looks:
// a request costs about a fifth more. It may be used from several goroutines at once.
type Networks struct {
	begun  time.Time
	counts [2][]*Recent // of IPv4 and of IPv6, one for each level
}

// NewNetworks makes Networks that count in spans of this length.
func NewNetworks(span time.Duration) *Networks {
	n := &Networks{begun: time.Now()}
	for family := range levels {
		for range levels[family] {
			n.counts[family] = append(n.counts[family], New(span))
		}
	}
	return n
}

// Add counts a request of a key that is an address or a network.
func (n *Networks) Add(key netip.Prefix, kind Kind) {
	of := family(key)
	for i, bits := range levels[of] {
		if network, err := key.Addr().Prefix(bits); err == nil && bits <= key.Bits() {
			n.counts[of][i].Add(string(network.AppendTo(make([]byte, 0, 32))), "", kind)
		}
	}
}

// family numbers the families of addresses.
func family(of netip.Prefix) int {
	if of.Addr().Is6() {
		return 1
	}
	return 0
}

// NetworkCount is a network with many requests.
type NetworkCount struct {
	Network  netip.Prefix
	Requests Count
	Refused  uint64 // at least

	// Own are the requests that are in no network within it that is listed, too: at most so many.
	Own uint64
}

// Top returns the networks with at least this share of all requests, from 0.002 to 1: the smallest ones that explain them. Larger
// ones are not listed only because of networks within them, and not the parts of a network all over which the requests are spread.
// A network that is not listed, and in none that is, has at most that many own requests. It also returns how many requests there
// were, and since when they were counted.
func (n *Networks) Top(share float64) (top []NetworkCount, total uint64, since time.Time) {
	for _, of := range n.counts {
		all := of[len(of)-1] // as each request is in one of the largest
		total += all.Spread().Requests
		if begun := all.spans().since(); !begun.IsZero() && (since.IsZero() || begun.Before(since)) {
			since = begun
		}
	}
	if since.IsZero() {
		since = n.begun
	}
	least := max(fewest, uint64(math.Ceil(share*float64(total))))
	for family := range levels {
		top = append(top, n.topOf(family, least)...)
	}
	slices.SortStableFunc(top, func(a, b NetworkCount) int { return cmp.Compare(b.Own, a.Own) })
	return top, total, since
}

// topOf returns the networks of a family with at least so many requests.
func (n *Networks) topOf(family int, least uint64) (listed []NetworkCount) { // the longest prefixes first
	for i, bits := range levels[family] {
		counted, _ := n.counts[family][i].Top(math.MaxInt, Requests)
		for _, e := range counted {
			c := NetworkCount{Network: netip.MustParsePrefix(e.Key), Requests: e.Counts[Requests], Refused: e.Counts[Refused].AtLeast}
			if i > 0 && bits >= widest {
				listed = c.replace(listed, levels[family][i-1])
			}
			if c.Own = c.own(listed); c.Own >= least {
				listed = append(listed, c)
			}
		}
	}
	for i := range listed {
		listed[i].Own = listed[i].own(listed[:i])
	}
	return listed
}

// replace returns what is listed without the networks that this one replaces, if they are in several of its parts, whose
// prefixes have these bits, and have half of its requests. One that stands out from them stays.
func (c *NetworkCount) replace(listed []NetworkCount, bits int) []NetworkCount {
	within := func(most uint64) (parts map[netip.Prefix]bool, sum uint64) {
		parts = make(map[netip.Prefix]bool)
		for _, other := range listed {
			if part, err := other.Network.Addr().Prefix(bits); err == nil && c.Network.Contains(part.Addr()) && other.Own <= most {
				parts[part] = true
				sum += other.Own
			}
		}
		return parts, sum
	}
	parts, sum := within(math.MaxUint64)
	if len(parts) < several {
		return listed
	}
	most := 2 * sum / uint64(len(parts))
	parts, even := within(most)
	if all := c.Requests.AtLeast + c.Requests.Error; len(parts) < several || 2*even < all-min(all, sum-even) {
		return listed
	}
	return slices.DeleteFunc(slices.Clone(listed), func(other NetworkCount) bool {
		return c.Network.Contains(other.Network.Addr()) && other.Own <= most
	})
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
