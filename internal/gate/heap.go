package gate

// keyHeap is a heap of keys: the first has had the least, and of equal ones has waited longest. It knows
// where each key is, so that one of them can be moved, which container/heap does without types.
type keyHeap []*key

func (k *key) before(other *key) bool {
	return k.had < other.had || k.had == other.had && k.seq < other.seq
}

func (h *keyHeap) push(k *key) {
	*h = append(*h, k)
	h.up(len(*h)-1, k)
}

func (h *keyHeap) remove(k *key) {
	old := *h
	n := len(old) - 1
	last := old[n]
	old[n] = nil
	*h = old[:n]
	if last != k {
		last.at = k.at
		h.fix(last)
	}
	k.at = -1
}

// fix moves a key whose order has changed.
func (h keyHeap) fix(k *key) {
	h.up(int(k.at), k)
	h.down(int(k.at), k)
}

// up puts a key at i, or above.
func (h keyHeap) up(i int, k *key) {
	for i > 0 {
		above := (i - 1) / 2
		if !k.before(h[above]) {
			break
		}
		h.put(i, h[above])
		i = above
	}
	h.put(i, k)
}

// down puts a key at i, or below.
func (h keyHeap) down(i int, k *key) {
	for {
		below := 2*i + 1
		if below >= len(h) {
			break
		}
		if below+1 < len(h) && h[below+1].before(h[below]) {
			below++
		}
		if !h[below].before(k) {
			break
		}
		h.put(i, h[below])
		i = below
	}
	h.put(i, k)
}

func (h keyHeap) put(i int, k *key) {
	h[i] = k
	k.at = int32(i)
}
