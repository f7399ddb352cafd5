package fleet

import (
	"cmp"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// id tells keys apart.
type id struct {
	text, base64 string
	length       int
}

// Merge adds up the counts of the keys in the lists of several instances, and returns up to n keys: those with the most requests, or
// with the most refusals. What an instance has counted of a key that it does not list is not in the sum.
func Merge(lists [][]adminapi.KeyCount, refused bool, n int) []adminapi.KeyCount {
	sum, places := []adminapi.KeyCount{}, make(map[id]int)
	for _, k := range slices.Concat(lists...) {
		of := id{k.Key, k.KeyBase64, k.Truncated}
		at, known := places[of]
		if !known {
			places[of] = len(sum)
			sum = append(sum, k)
			continue
		}
		s := &sum[at]
		s.Plan, s.Requests, s.Refused = cmp.Or(k.Plan, s.Plan), s.Requests+k.Requests, s.Refused+k.Refused
	}
	slices.SortStableFunc(sum, func(a, b adminapi.KeyCount) int { return cmp.Compare(b.Count(refused), a.Count(refused)) })
	return sum[:min(n, len(sum))]
}
