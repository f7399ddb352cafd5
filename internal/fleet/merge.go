package fleet

import (
	"cmp"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// Lists are what an instance lists of a zone: the keys by the kind in question first, and then those by other kinds, which
// have counts and bounds of further keys. If the first is not by requests, that list should be there, because it bounds
// refusals and dry runs too.
type Lists []adminapi.Top

// Merge adds up the lists of a zone, of several instances: up to n keys. An instance that does not list a key may have
// counted it up to a bound, so the sum is uncertain by as much.
func Merge(of []Lists, n int) adminapi.Top {
	sum := adminapi.Top{Zone: of[0][0].Zone, By: of[0][0].By, Keys: []adminapi.KeyCount{}}
	listed := make(map[id]bool)
	for _, lists := range of {
		list := &lists[0]
		sum.Unlisted += list.Unlisted
		if list.Since != nil && (sum.Since == nil || list.Since.Before(*sum.Since)) {
			sum.Since = list.Since
		}
		for i := range list.Keys {
			if key := keyID(&list.Keys[i].KeyText); !listed[key] {
				listed[key] = true
				sum.Keys = append(sum.Keys, adminapi.KeyCount{KeyText: list.Keys[i].KeyText})
			}
		}
	}
	for _, lists := range of {
		counted, most := lists.counted(), lists.most()
		for i := range sum.Keys {
			addCounts(&sum.Keys[i], cmp.Or(counted[keyID(&sum.Keys[i].KeyText)], most))
		}
	}
	slices.SortStableFunc(sum.Keys, func(a, b adminapi.KeyCount) int { return cmp.Compare(Count(&b, sum.By), Count(&a, sum.By)) })
	cut(&sum, n)
	return sum
}

// counted returns the counts of the keys that an instance lists.
func (l Lists) counted() map[id]*adminapi.KeyCount {
	counted := make(map[id]*adminapi.KeyCount)
	for _, list := range slices.Backward(l) {
		for i := range list.Keys {
			counted[keyID(&list.Keys[i].KeyText)] = &list.Keys[i]
		}
	}
	return counted
}

// most returns the counts of a key that the instance does not list: nothing for sure, and how much it may be.
func (l Lists) most() *adminapi.KeyCount {
	most := new(adminapi.KeyCount)
	for kind := range kinds {
		bounds := make([]uint64, 0, len(l))
		for _, list := range l {
			if by := kindOf(list.By); by == kind || by == byRequests {
				bounds = append(bounds, list.Unlisted)
			}
		}
		if _, more := countOf(most, kind); len(bounds) > 0 {
			*more = slices.Min(bounds)
		}
	}
	return most
}

// kindOf returns a kind by its name. The empty one is that of requests.
func kindOf(name string) int { return max(0, slices.Index(Kinds[:], name)) }

// Count returns the count of a key by which a list is sorted.
func Count(k *adminapi.KeyCount, by string) uint64 {
	least, _ := countOf(k, kindOf(by))
	return *least
}

// countOf returns a count of a key, and how much more it may be.
func countOf(k *adminapi.KeyCount, kind int) (least, more *uint64) {
	switch kind {
	case byRefused:
		return &k.Refused, &k.RefusedError
	case byDryRun:
		return &k.DryRun, &k.DryRunError
	}
	return &k.Requests, &k.RequestsError
}

func addCounts(to, k *adminapi.KeyCount) {
	to.Plan = cmp.Or(k.Plan, to.Plan)
	for kind := range kinds {
		least, more := countOf(to, kind)
		n, error := countOf(k, kind)
		*least, *more = *least+*n, *more+*error
	}
}
