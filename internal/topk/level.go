package topk

import (
	"cmp"
	"container/heap"
	"math"
	"net/netip"
	"slices"
	"sync"
)

const (
	// levelPlaces is how many networks of a level are counted at once. One with more than 1/512 of the requests is always among
	// them.
	levelPlaces = 512

	// registers is how many registers estimate how many keys a network has. With 64, the standard error is 13 %.
	registers = 64
)

// KeysError is the standard error of NetworkCount.Keys, as a part of it.
const KeysError = 0.13

// level counts requests by networks with one length of prefix. It is the Space-Saving algorithm
// of A. Metwally, D. Agrawal and A. El Abbadi (Efficient computation of frequent and top-k elements in data streams, 2005): if all
// places are taken, a new network takes the place with the lowest count, and that count, which is kept as its error.
type level struct {
	mu     sync.Mutex
	places map[netip.Prefix]*levelPlace
	order  levelHeap // the lowest count first
}

type levelPlace struct {
	of           netip.Prefix
	count, error uint64
	refused      uint64 // since it has the place
	index        int    // in the heap
	keys         [registers]uint8
}

type levelHeap []*levelPlace

func (h levelHeap) Len() int           { return len(h) }
func (h levelHeap) Less(i, j int) bool { return h[i].count < h[j].count }
func (h levelHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].index, h[j].index = i, j }
func (h *levelHeap) Push(x any)        { p := x.(*levelPlace); p.index = len(*h); *h = append(*h, p) }
func (h *levelHeap) Pop() any          { panic("places stay") }

// add counts a request of a network, by the hash of its key.
func (l *level) add(of netip.Prefix, hash uint64, refused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.places[of]
	if p == nil {
		p = l.place(of)
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

// place gives a network a place: a free one, or that with the lowest count. The lock is held.
func (l *level) place(of netip.Prefix) *levelPlace {
	var p *levelPlace
	if len(l.order) < levelPlaces {
		if l.places == nil {
			l.places = make(map[netip.Prefix]*levelPlace)
		}
		p = &levelPlace{of: of}
		heap.Push(&l.order, p)
	} else {
		p = l.order[0]
		delete(l.places, p.of)
		*p = levelPlace{of: of, count: p.count, error: p.count, index: p.index}
	}
	l.places[of] = p
	return p
}

// unlisted returns how often a network without a place may have come.
func (l *level) unlisted() uint64 {
	if len(l.order) < levelPlaces {
		return 0
	}
	return l.order[0].count
}

// count returns the count of a network.
func (l *level) count(of netip.Prefix) Count {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.places[of]; p != nil {
		return Count{p.count - p.error, p.error}
	}
	return Count{Error: l.unlisted()}
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

// sum adds up the counts of a level in some spans, and tells those of the spans before them, if there are any. The network with
// the most requests comes first.
func sum(now, before []*level) (all []NetworkCount) {
	sums := make(map[netip.Prefix]*levelPlace)
	for _, l := range now {
		l.mu.Lock()
		for of, p := range l.places {
			sum := sums[of]
			if sum == nil {
				sum = &levelPlace{of: of}
				sums[of] = sum
			}
			sum.refused += p.refused
			for i, r := range p.keys {
				sum.keys[i] = max(sum.keys[i], r)
			}
		}
		l.mu.Unlock()
	}
	for of, sum := range sums {
		h := NetworkCount{Network: of, Requests: total(now, of), Keys: distinct(&sum.keys)}
		h.Refused = Count{AtLeast: sum.refused, Error: h.Requests.Error}
		if len(before) > 0 {
			was := total(before, of)
			h.Before = &was
		}
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b NetworkCount) int {
		return cmp.Or(cmp.Compare(b.Requests.AtLeast, a.Requests.AtLeast), a.Network.Compare(b.Network))
	})
	return all
}

// total adds up the counts of a network.
func total(levels []*level, of netip.Prefix) (c Count) {
	for _, l := range levels {
		in := l.count(of)
		c.AtLeast, c.Error = c.AtLeast+in.AtLeast, c.Error+in.Error
	}
	return c
}

// unlisted returns how often a network that has no place in any level may have come.
func unlisted(levels []*level) (n uint64) {
	for _, l := range levels {
		l.mu.Lock()
		n += l.unlisted()
		l.mu.Unlock()
	}
	return n
}
