package topk

import (
	"cmp"
	"hash/maphash"
	"math"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The levels of prefixes that are counted. A network that is heavy because of a part of it is told from that part by
// [NetworkCount].Own.
var (
	levels4 = []int{32, 28, 24, 20, 16, 12, 8}
	levels6 = []int{64, 56, 48, 40, 32}
	levels  = [2][]int{levels4, levels6}
)

const (
	// widest is the shortest prefix of a network that replaces those within it. Larger ones belong to several owners.
	widest = 16

	// several is in how many parts of a network, of mostly 16, its requests are spread all over it.
	several = 8

	// fewest is how many requests a listed network has at least. Fewer say nothing, as when counting has just begun.
	fewest = 10
)

// Networks counts requests by the networks of their addresses, on all levels at once. It is for a time in which somebody looks:
// a request costs about as much as the rest of its decision. It may be used from several goroutines at once.
type Networks struct {
	seed   maphash.Seed
	length time.Duration // of a span

	mu     sync.RWMutex     // requests hold it for reading
	asked  time.Time        // when somebody has looked last
	counts []*networkCounts // of the current span, and of the one before
}

// networkCounts has the counts of a span of time: a level for each length of prefixes, of IPv4 and IPv6.
type networkCounts struct {
	since  time.Time
	total  atomic.Uint64
	levels [2][7]sketch[networkInfo]
}

// networkInfo is what is known of a network since it has its place.
type networkInfo struct {
	network netip.Prefix
	refused uint64
}

// NewNetworks makes Networks that count in spans of this length.
func NewNetworks(span time.Duration) *Networks {
	now := time.Now()
	return &Networks{seed: maphash.MakeSeed(), length: span, asked: now, counts: []*networkCounts{{since: now}}}
}

// Add counts a request of a key that is an address or a network.
func (n *Networks) Add(key netip.Prefix, refused bool) {
	of := family(key)
	n.mu.RLock()
	defer n.mu.RUnlock()
	n.counts[0].total.Add(1)
	for i, bits := range levels[of] {
		network, err := key.Addr().Prefix(bits)
		if err != nil || bits > key.Bits() {
			continue
		}
		b, info, isNew := n.counts[0].levels[of][i].add(maphash.Comparable(n.seed, network))
		if isNew {
			*info = networkInfo{network: network}
		}
		if info != nil && refused {
			info.refused++
		}
		b.mu.Unlock()
	}
}

// family numbers the families of addresses.
func family(of netip.Prefix) int {
	if of.Addr().Is6() {
		return 1
	}
	return 0
}

// Rotate begins a new span if the current one is over. It reports false if nobody has looked for four spans, so that counting can
// end.
func (n *Networks) Rotate(now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now.Sub(n.counts[0].since) >= n.length {
		n.counts = []*networkCounts{{since: now}, n.counts[0]}
	}
	return now.Sub(n.asked) < 4*n.length
}

// NetworkCount is a network with many requests.
type NetworkCount struct {
	Network  netip.Prefix
	Requests Count
	Refused  uint64 // at least

	// Own are the requests that are in no network within it that is listed, too: at most so many.
	Own uint64
}

// networkLevel has the networks with one length of prefix.
type networkLevel struct {
	Bits   int
	Counts []NetworkCount // without Own, and the one with the most requests first
}

// networkLevels are the networks of IPv4 and those of IPv6, those with the longest prefixes first.
type networkLevels [2][]networkLevel

// Top returns the networks with at least this share of all requests, from 0.002 to 1: the smallest ones that explain them. Larger
// ones are not listed only because of networks within them, and not the parts of a network all over which the requests are spread.
// A network that is not listed, and in none that is, has at most that many own requests. It also returns how many requests there
// were, and since when they were counted.
func (n *Networks) Top(share float64) (top []NetworkCount, total uint64, since time.Time) {
	all, total, since := n.counted()
	return all.top(share, total), total, since
}

// counted returns all that is counted, how many requests there were, and since when they were counted.
func (n *Networks) counted() (all networkLevels, total uint64, since time.Time) {
	n.mu.Lock()
	n.asked = time.Now()
	spans := n.counts
	n.mu.Unlock()
	for _, span := range spans {
		total, since = total+span.total.Load(), span.since
	}
	for family := range levels {
		for i, bits := range levels[family] {
			var level []*sketch[networkInfo]
			for _, span := range spans {
				level = append(level, &span.levels[family][i])
			}
			all[family] = append(all[family], levelOf(bits, level))
		}
	}
	return all, total, since
}

// levelOf adds up the counts of a level in some spans.
func levelOf(bits int, spans []*sketch[networkInfo]) networkLevel {
	l, known := networkLevel{Bits: bits}, make(map[uint64]*NetworkCount)
	for _, s := range spans {
		s.each(func(hash uint64, of *networkInfo, _ Count) {
			if known[hash] == nil {
				known[hash] = &NetworkCount{Network: of.network}
			}
			known[hash].Refused += of.refused
		})
	}
	for hash, c := range known {
		c.Requests = total(spans, hash)
		l.Counts = append(l.Counts, *c)
	}
	slices.SortFunc(l.Counts, func(a, b NetworkCount) int {
		return cmp.Or(cmp.Compare(b.Requests.AtLeast, a.Requests.AtLeast), a.Network.Compare(b.Network))
	})
	return l
}

// top returns the networks with at least this share of all requests, as [Networks.Top] does.
func (all *networkLevels) top(share float64, total uint64) (top []NetworkCount) {
	least := max(fewest, uint64(math.Ceil(share*float64(total))))
	for family := range all {
		var listed []NetworkCount // by length of prefix, the longest first
		for i, l := range all[family] {
			for _, c := range l.Counts {
				if i > 0 && l.Bits >= widest {
					listed = c.replace(listed, all[family][i-1].Bits)
				}
				if c.Own = c.own(listed); c.Own >= least {
					listed = append(listed, c)
				}
			}
		}
		for i := range listed {
			listed[i].Own = listed[i].own(listed[:i])
		}
		top = append(top, listed...)
	}
	slices.SortStableFunc(top, func(a, b NetworkCount) int { return cmp.Compare(b.Own, a.Own) })
	return top
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
