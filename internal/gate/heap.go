package gate

// lineHeap is a heap of lines: of the first, the fewest requests run, of equal ones it has had the least, and then has
// waited longest. It knows where each line is, so that one of them can be moved, which container/heap does without types.
type lineHeap []*line

func (l *line) before(other *line) bool {
	if l.key.running != other.key.running {
		return l.key.running < other.key.running
	}
	return l.had < other.had || l.had == other.had && l.seq < other.seq
}

func (h *lineHeap) push(l *line) {
	*h = append(*h, l)
	h.up(len(*h)-1, l)
}

func (h *lineHeap) remove(l *line) {
	old := *h
	n := len(old) - 1
	last := old[n]
	old[n] = nil
	*h = old[:n]
	if last != l {
		last.at = l.at
		h.fix(last)
	}
	l.at = -1
}

// fix moves a line whose order has changed.
func (h lineHeap) fix(l *line) {
	h.up(int(l.at), l)
	h.down(int(l.at), l)
}

// up puts a line at i, or above.
func (h lineHeap) up(i int, l *line) {
	for i > 0 {
		above := (i - 1) / 2
		if !l.before(h[above]) {
			break
		}
		h.put(i, h[above])
		i = above
	}
	h.put(i, l)
}

// down puts a line at i, or below.
func (h lineHeap) down(i int, l *line) {
	for {
		below := 2*i + 1
		if below >= len(h) {
			break
		}
		if below+1 < len(h) && h[below+1].before(h[below]) {
			below++
		}
		if !h[below].before(l) {
			break
		}
		h.put(i, h[below])
		i = below
	}
	h.put(i, l)
}

func (h lineHeap) put(i int, l *line) {
	h[i] = l
	l.at = int32(i)
}
