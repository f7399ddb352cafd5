package algorithms_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// TestLog compares the ring with a slice.
func TestLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ring algorithms.Log
		var slice []int64
		now := int64(1)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now += rapid.Int64Range(0, 3).Draw(t, "gap")
			switch rapid.IntRange(0, 3).Draw(t, "do") {
			case 0, 1:
				ring.Append(now)
				slice = append(slice, now)
			case 2:
				n := rapid.IntRange(0, len(slice)).Draw(t, "forget")
				ring.Forget(n)
				slice = slice[n:]
			case 3:
				clone := ring.Clone()
				clone.Append(now + 100)
				clone.Forget(1)
			}
			edge := rapid.Int64Range(0, now+2).Draw(t, "edge")
			want, _ := slices.BinarySearch(slice, edge)
			if got := ring.Before(edge); got != want {
				t.Fatalf("%d events before %d in %v, got %d", want, edge, slice, got)
			}
			if ring.Len() != len(slice) {
				t.Fatalf("length %d, want %d", ring.Len(), len(slice))
			}
			for i := range slice {
				if ring.At(i) != slice[i] {
					t.Fatalf("event %d is %d, want %v", i, ring.At(i), slice)
				}
			}
			if len(slice) > 0 && ring.Newest() != slice[len(slice)-1] || len(slice) == 0 && ring.Newest() != 0 {
				t.Fatalf("newest %d of %v", ring.Newest(), slice)
			}
		}
	})
}

// TestLogTakesWhatItHolds: not what the limit would allow, which for
// mholt/caddy-ratelimit came to 4.8 GB.
func TestLogTakesWhatItHolds(t *testing.T) {
	var log algorithms.Log
	for i := range int64(10_000) {
		log.Append(i)
		if room, held := log.Room(), log.Len(); room > held+held/4+1 {
			t.Fatalf("room for %d events, %d held", room, held)
		}
	}
	for log.Len() > 0 {
		log.Forget(min(log.Len(), 777))
		if room, held := log.Room(), log.Len(); room > 2*held+1 {
			t.Fatalf("room for %d events after some are forgotten, %d held", room, held)
		}
	}
}
