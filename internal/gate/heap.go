package gate

// lineHeap is a heap of lines for [container/heap]: of the first, the fewest requests run, of equal ones it has had the
// least, and then has waited longest. Each line knows where it is, so that it can be moved.
type lineHeap []*line

func (l *line) before(other *line) bool {
	if l.key.running != other.key.running {
		return l.key.running < other.key.running
	}
	return l.had < other.had || l.had == other.had && l.seq < other.seq
}

func (h lineHeap) Len() int           { return len(h) }
func (h lineHeap) Less(i, j int) bool { return h[i].before(h[j]) }

func (h lineHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = int32(i), int32(j)
}

// Push is for container/heap.
func (h *lineHeap) Push(l any) {
	*h = append(*h, l.(*line))
	l.(*line).at = int32(len(*h) - 1)
}

// Pop is for container/heap.
func (h *lineHeap) Pop() any {
	n := len(*h) - 1
	l := (*h)[n]
	(*h)[n], *h = nil, (*h)[:n]
	l.at = -1
	return l
}
