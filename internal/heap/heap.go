// Package heap is a heap of values of one type, which know their order.
package heap

// Heap has its first value at index 0.
type Heap[T interface{ Before(other T) bool }] []T

// Push adds a value.
func (h *Heap[T]) Push(v T) {
	*h = append(*h, v)
	h.Fix(len(*h) - 1)
}

// Pop removes the first value.
func (h *Heap[T]) Pop() T { return h.Remove(0) }

// Remove removes the value at an index.
func (h *Heap[T]) Remove(i int) (v T) {
	all, last := *h, len(*h)-1
	v, all[i] = all[i], all[last]
	clear(all[last:])
	if *h = all[:last]; i < last {
		h.Fix(i)
	}
	return v
}

// Fix moves the value at an index that has changed to its place.
func (h Heap[T]) Fix(i int) {
	for above := (i - 1) / 2; i > 0 && h[i].Before(h[above]); above = (i - 1) / 2 {
		h[i], h[above] = h[above], h[i]
		i = above
	}
	for below := 2*i + 1; below < len(h); below = 2*i + 1 {
		if below+1 < len(h) && h[below+1].Before(h[below]) {
			below++
		}
		if !h[below].Before(h[i]) {
			return
		}
		h[i], h[below] = h[below], h[i]
		i = below
	}
}
