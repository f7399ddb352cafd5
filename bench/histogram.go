package main

import (
	"math/bits"
	"time"
)

// histogram counts latencies in steps of less than one percent.
type histogram [40 << stepBits]uint32

const stepBits = 7 // 128 steps for each doubling

func (h *histogram) add(d time.Duration) {
	v := uint64(max(d, 0))
	shift := max(bits.Len64(v)-stepBits-1, 0)
	h[min(shift<<stepBits+int(v>>shift), len(h)-1)]++
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other {
		h[i] += n
	}
}

// quantile returns the latency that a part of all decisions stays within.
func (h *histogram) quantile(part float64) time.Duration {
	var all, seen uint64
	for _, n := range h {
		all += uint64(n)
	}
	for i, n := range h {
		seen += uint64(n)
		if n > 0 && float64(seen) >= part*float64(all) {
			return middle(i)
		}
	}
	return 0
}

// middle returns the latency in the middle of a step.
func middle(i int) time.Duration {
	if i < 1<<stepBits {
		return time.Duration(i)
	}
	shift := i>>stepBits - 1
	low := uint64(i-shift<<stepBits) << shift
	return time.Duration(low + uint64(1)<<shift/2)
}
