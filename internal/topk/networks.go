package topk

import (
	"cmp"
	"container/heap"
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
)

const (
	// networkPlaces is how many networks of a level are counted at once. One with more than 1/512 of the requests is
	// always among them.
	networkPlaces = 512

	// networkSpans is how many spans are kept: the current one and the one before, and those ten minutes earlier.
	networkSpans = 4

	// registers is how many registers estimate how many keys a network has. With 64, the standard error is 13 %.
	registers = 64
)

// KeysError is the standard error of NetworkCount.Keys, as a part of it.
const KeysError = 0.13

// Networks counts requests by the networks of their addresses, on all levels at once. It is for a time in which somebody looks:
// a request costs about as much as the rest of its decision. It may be used from several goroutines at once.
//
// On each level it is the Space-Saving algorithm of A. Metwally, D. Agrawal and A. El Abbadi (Efficient computation of frequent
// and top-k elements in data streams, 2005): if all places are taken, a new network takes the place with the lowest count, and
// that count, which is kept as its error.
type Networks struct {
	seed  maphash.Seed
	span  time.Duration
	began time.Time
	asked atomic.Int64 // when somebody has looked last, since began

	mu    sync.RWMutex   // for spans; requests hold it for reading
	spans []*networkSpan // the current one first
}

// networkSpan has the counts of a span of time.
type networkSpan struct {
	since  time.Time
	until  time.Time // zero for the current span
	levels [2][]networkLevel
	total  atomic.Uint64
}

// networkLevel counts the networks with one length of prefix.
type networkLevel struct {
	mu     sync.Mutex
	bits   int
	places map[netip.Prefix]*networkPlace
	order  networkHeap // the lowest count first
}

type networkPlace struct {
	network      netip.Prefix
	count, error uint64
	refused      uint64 // since it has the place
	index        int    // in the heap
	keys         [registers]uint8
}

type networkHeap []*networkPlace

func (h networkHeap) Len() int           { return len(h) }
func (h networkHeap) Less(i, j int) bool { return h[i].count < h[j].count }
func (h networkHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].index, h[j].index = i, j }
func (h *networkHeap) Push(x any)        { p := x.(*networkPlace); p.index = len(*h); *h = append(*h, p) }
func (h *networkHeap) Pop() any          { panic("places stay") }

// NewNetworks makes Networks that count in spans of this length.
func NewNetworks(span time.Duration) *Networks {
	n := &Networks{seed: maphash.MakeSeed(), span: span, began: time.Now()}
	n.spans = []*networkSpan{newNetworkSpan(n.began)}
	return n
}

func newNetworkSpan(now time.Time) *networkSpan {
	s := &networkSpan{since: now}
	for i, levels := range [][]int{levels4, levels6} {
		s.levels[i] = make([]networkLevel, len(levels))
		for j, bits := range levels {
			s.levels[i][j] = networkLevel{bits: bits, places: make(map[netip.Prefix]*networkPlace)}
		}
	}
	return s
}

// Add counts a request of a key that is an address or a network.
func (n *Networks) Add(key netip.Prefix, refused bool) {
	hash := maphash.Comparable(n.seed, key)
	n.mu.RLock()
	defer n.mu.RUnlock()
	s := n.spans[0]
	s.total.Add(1)
	family := 0
	if key.Addr().Is6() {
		family = 1
	}
	for i := range s.levels[family] {
		if l := &s.levels[family][i]; l.bits <= key.Bits() {
			if network, err := key.Addr().Prefix(l.bits); err == nil {
				l.add(network, hash, refused)
			}
		}
	}
}

func (l *networkLevel) add(network netip.Prefix, hash uint64, refused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.places[network]
	switch {
	case p != nil:
	case len(l.order) < networkPlaces:
		p = &networkPlace{network: network}
		l.places[network] = p
		heap.Push(&l.order, p)
	default:
		p = l.order[0]
		delete(l.places, p.network)
		*p = networkPlace{network: network, count: p.count, error: p.count, index: p.index}
		l.places[network] = p
	}
	p.count++
	if refused {
		p.refused++
	}
	register, rank := hash%registers, uint8(1)
	for rest := hash / registers; rest&1 == 0 && rank < 58; rest >>= 1 {
		rank++
	}
	p.keys[register] = max(p.keys[register], rank)
	heap.Fix(&l.order, p.index)
}

// unlisted returns how often a network without a place may have come.
func (l *networkLevel) unlisted() uint64 {
	if len(l.order) < networkPlaces {
		return 0
	}
	return l.order[0].count
}

// distinct estimates how many keys have set the registers: HyperLogLog, with its correction for few keys.
func distinct(of *[registers]uint8) uint64 {
	sum, empty := 0.0, 0
	for _, r := range of {
		sum += math.Exp2(-float64(r))
		if r == 0 {
			empty++
		}
	}
	estimate := 0.709 * registers * registers / sum
	if estimate <= 2.5*registers && empty > 0 {
		estimate = registers * math.Log(registers/float64(empty))
	}
	return uint64(math.Round(estimate))
}

// Rotate begins a new span if the current one is over. It reports false if nobody has looked for longer than all spans together,
// so that counting can end.
func (n *Networks) Rotate(now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.spans[0]; now.Sub(s.since) >= n.span {
		s.until = now
		n.spans = slices.Insert(n.spans, 0, newNetworkSpan(now))
		n.spans = n.spans[:min(len(n.spans), networkSpans)]
	}
	return now.Sub(n.began)-time.Duration(n.asked.Load()) < networkSpans*n.span
}

// NetworkCount is a network with many requests.
type NetworkCount struct {
	Network           netip.Prefix
	Requests, Refused Count

	// Own are the requests that are in no network within it that is listed, too: at most so many.
	Own uint64

	// Keys is how many different keys it has, estimated: see [KeysError]. Some may be missing if Requests has an error.
	Keys uint64

	// Before is what its Requests were ten minutes before. It is nil if they were not counted then.
	Before *Count
}

// Top returns the networks with at least this share of all requests, from 0.002 to 1, without those of larger ones only because
// of networks within them. A network that is not listed has at most that many own requests. It also returns how many requests
// there were, and since when they were counted.
func (n *Networks) Top(share float64) (top []NetworkCount, total uint64, since time.Time) {
	n.asked.Store(int64(time.Since(n.began)))
	n.mu.RLock()
	defer n.mu.RUnlock()
	now, before := n.spans[:min(2, len(n.spans))], n.spans[min(2, len(n.spans)):]
	for _, s := range now {
		total += s.total.Load()
	}
	least := uint64(math.Ceil(share * float64(total)))
	for family := range 2 {
		var listed []NetworkCount // by length of prefix, the longest first
		for level := range now[0].levels[family] {
			for _, c := range sumNetworks(now, family, level) {
				own := c.Requests.AtLeast + c.Requests.Error
				var within []netip.Prefix
				for _, other := range slices.Backward(listed) { // larger ones first
					p := other.Network
					if c.Network.Contains(p.Addr()) && !slices.ContainsFunc(within, func(larger netip.Prefix) bool { return larger.Contains(p.Addr()) }) {
						within = append(within, p)
						own -= min(own, other.Requests.AtLeast)
					}
				}
				if own >= max(1, least) {
					c.Own = own
					if len(before) == networkSpans-2 {
						was := Count{}
						for _, s := range before {
							was = was.plus(s.levels[family][level].count(c.Network))
						}
						c.Before = &was
					}
					listed = append(listed, c)
				}
			}
		}
		top = append(top, listed...)
	}
	slices.SortStableFunc(top, func(a, b NetworkCount) int { return cmp.Compare(b.Own, a.Own) })
	return top, total, now[len(now)-1].since
}

func (c Count) plus(other Count) Count {
	return Count{c.AtLeast + other.AtLeast, c.Error + other.Error}
}

// count returns the count of a network.
func (l *networkLevel) count(network netip.Prefix) Count {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.places[network]; p != nil {
		return Count{p.count - p.error, p.error}
	}
	return Count{Error: l.unlisted()}
}

// sumNetworks adds up the counts of a level in some spans.
func sumNetworks(spans []*networkSpan, family, level int) (all []NetworkCount) {
	sums := make(map[netip.Prefix]*networkPlace)
	for _, s := range spans {
		l := &s.levels[family][level]
		l.mu.Lock()
		for network, p := range l.places {
			sum := sums[network]
			if sum == nil {
				sum = &networkPlace{network: network}
				sums[network] = sum
			}
			sum.refused += p.refused
			for i, r := range p.keys {
				sum.keys[i] = max(sum.keys[i], r)
			}
		}
		l.mu.Unlock()
	}
	for network, sum := range sums {
		c := NetworkCount{Network: network, Keys: distinct(&sum.keys)}
		for _, s := range spans {
			c.Requests = c.Requests.plus(s.levels[family][level].count(network))
		}
		c.Refused = Count{AtLeast: sum.refused, Error: c.Requests.Error}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b NetworkCount) int {
		return cmp.Or(cmp.Compare(b.Requests.AtLeast, a.Requests.AtLeast), a.Network.Addr().Compare(b.Network.Addr()))
	})
	return all
}
