package topk

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"sync"
)

const (
	// levelPlaces is how many sets of a level are counted at once. One with more than 1/512 of the requests is always among
	// them.
	levelPlaces = 512

	// registers is how many registers estimate how many keys a set has. With 64, the standard error is 13 %.
	registers = 64
)

// KeysError is the standard error of Heavy.Keys, as a part of it.
const KeysError = 0.13

// level counts requests by sets of keys, such as networks with one length of prefix, or groups. It is the Space-Saving algorithm
// of A. Metwally, D. Agrawal and A. El Abbadi (Efficient computation of frequent and top-k elements in data streams, 2005): if all
// places are taken, a new set takes the place with the lowest count, and that count, which is kept as its error.
type level[K comparable] struct {
	mu     sync.Mutex
	places map[K]*levelPlace[K]
	order  levelHeap[K] // the lowest count first
}

type levelPlace[K comparable] struct {
	of           K
	count, error uint64
	refused      uint64 // since it has the place
	index        int    // in the heap
	keys         [registers]uint8
}

type levelHeap[K comparable] []*levelPlace[K]

func (h levelHeap[K]) Len() int           { return len(h) }
func (h levelHeap[K]) Less(i, j int) bool { return h[i].count < h[j].count }
func (h levelHeap[K]) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].index, h[j].index = i, j }
func (h *levelHeap[K]) Push(x any)        { p := x.(*levelPlace[K]); p.index = len(*h); *h = append(*h, p) }
func (h *levelHeap[K]) Pop() any          { panic("places stay") }

// add counts a request of a set, by the hash of its key. keep makes what stays of a set that gets a place.
func (l *level[K]) add(of K, hash uint64, refused bool, keep func(K) K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.places[of]
	if p == nil {
		p = l.place(keep(of))
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

// asItIs keeps all of a set.
func asItIs[K comparable](of K) K { return of }

// place gives a set a place: a free one, or that with the lowest count. The lock is held.
func (l *level[K]) place(of K) *levelPlace[K] {
	var p *levelPlace[K]
	if len(l.order) < levelPlaces {
		if l.places == nil {
			l.places = make(map[K]*levelPlace[K])
		}
		p = &levelPlace[K]{of: of}
		heap.Push(&l.order, p)
	} else {
		p = l.order[0]
		delete(l.places, p.of)
		*p = levelPlace[K]{of: of, count: p.count, error: p.count, index: p.index}
	}
	l.places[of] = p
	return p
}

// unlisted returns how often a set without a place may have come.
func (l *level[K]) unlisted() uint64 {
	if len(l.order) < levelPlaces {
		return 0
	}
	return l.order[0].count
}

// count returns the count of a set.
func (l *level[K]) count(of K) Count {
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

// Heavy has the counts of a set of keys with many requests.
type Heavy struct {
	Requests, Refused Count

	// Keys is how many different keys it has, estimated: see [KeysError]. Some may be missing if Requests has an error.
	Keys uint64

	// KeysMost is, of several instances, how many they are if no key came to two of them. Keys are those of one instance.
	KeysMost uint64

	// Before is what its Requests were ten minutes before. It is nil if they were not counted then.
	Before *Count
}

// heavy is a set and its counts.
type heavy[K comparable] struct {
	of K
	Heavy
}

// sum adds up the counts of a level in some spans, and tells those of the spans before them, if there are any. The set with the
// most requests comes first, and compare orders those with as many.
func sum[K comparable](now, before []*level[K], compare func(a, b K) int) (all []heavy[K]) {
	sums := make(map[K]*levelPlace[K])
	for _, l := range now {
		l.mu.Lock()
		for of, p := range l.places {
			sum := sums[of]
			if sum == nil {
				sum = &levelPlace[K]{of: of}
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
		h := heavy[K]{of, Heavy{Requests: total(now, of), Keys: distinct(&sum.keys)}}
		h.Refused = Count{AtLeast: sum.refused, Error: h.Requests.Error}
		if len(before) > 0 {
			was := total(before, of)
			h.Before = &was
		}
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b heavy[K]) int {
		return cmp.Or(cmp.Compare(b.Requests.AtLeast, a.Requests.AtLeast), compare(a.of, b.of))
	})
	return all
}

// total adds up the counts of a set.
func total[K comparable](levels []*level[K], of K) (c Count) {
	for _, l := range levels {
		in := l.count(of)
		c.AtLeast, c.Error = c.AtLeast+in.AtLeast, c.Error+in.Error
	}
	return c
}

// unlisted returns how often a set that has no place in any level may have come.
func unlisted[K comparable](levels []*level[K]) (n uint64) {
	for _, l := range levels {
		l.mu.Lock()
		n += l.unlisted()
		l.mu.Unlock()
	}
	return n
}
