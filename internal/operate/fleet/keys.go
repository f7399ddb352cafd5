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

// Merge adds up the counts of the keys that each of several instances lists, once or twice, and returns up to n keys: those with the
// most requests, or with the most refusals. What an instance has counted of a key that it does not list is not in the sum.
func Merge(instances [][]adminapi.KeyCount, refused bool, n int) []adminapi.KeyCount {
	type place struct{ at, last int } // in the sum, and the instance that was added last
	sum, places := []adminapi.KeyCount{}, make(map[id]place)
	for i, listed := range instances {
		for _, k := range listed {
			of := id{k.Key, k.KeyBase64, k.Truncated}
			p, known := places[of]
			if !known {
				p.at, sum = len(sum), append(sum, k)
			} else if s := &sum[p.at]; p.last < i {
				s.Plan, s.Requests, s.Refused = cmp.Or(k.Plan, s.Plan), s.Requests+k.Requests, s.Refused+k.Refused
			}
			places[of] = place{p.at, i}
		}
	}
	sum = slices.DeleteFunc(sum, func(k adminapi.KeyCount) bool { return k.Count(refused) == 0 })
	slices.SortStableFunc(sum, func(a, b adminapi.KeyCount) int { return cmp.Compare(b.Count(refused), a.Count(refused)) })
	return sum[:min(n, len(sum))]
}
