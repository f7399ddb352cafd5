package fleet

import (
	"cmp"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// Merge adds up the lists of a zone by one kind, of several instances: up to n keys. An instance that does not list a key
// may have counted it up to a bound, so the sum is uncertain by as much.
func Merge(lists []adminapi.Top, n int) adminapi.Top {
	sum := adminapi.Top{Zone: lists[0].Zone, Life: lists[0].Life, By: lists[0].By, Keys: []adminapi.KeyCount{}}
	at := make(map[id]int)
	var unlisted []uint64 // of each key, by the lists that have it
	for _, list := range lists {
		sum.Unlisted += list.Unlisted
		if list.Since != nil && (sum.Since == nil || list.Since.Before(*sum.Since)) {
			sum.Since = list.Since
		}
		for _, k := range list.Keys {
			if i, known := at[keyID(&k.KeyText)]; known {
				addCounts(&sum.Keys[i], &k)
				unlisted[i] += list.Unlisted
				continue
			}
			at[keyID(&k.KeyText)] = len(sum.Keys)
			sum.Keys, unlisted = append(sum.Keys, k), append(unlisted, list.Unlisted)
		}
	}
	kind := max(0, slices.Index(Kinds[:], sum.By))
	for i := range sum.Keys {
		_, more := countOf(&sum.Keys[i], kind)
		*more += sum.Unlisted - min(sum.Unlisted, unlisted[i]) // those of the lists that do not have it
	}
	slices.SortStableFunc(sum.Keys, func(a, b adminapi.KeyCount) int {
		x, _ := countOf(&a, kind)
		y, _ := countOf(&b, kind)
		return cmp.Compare(*y, *x)
	})
	for _, k := range sum.Keys[min(n, len(sum.Keys)):] {
		least, more := countOf(&k, kind)
		sum.Unlisted = max(sum.Unlisted, *least+*more)
	}
	sum.Keys = sum.Keys[:min(n, len(sum.Keys))]
	return sum
}

// countOf returns a count of a key, and how much more it may be.
func countOf(k *adminapi.KeyCount, kind int) (least, more *uint64) {
	switch kind {
	case byRefused:
		return &k.Refused, &k.RefusedError
	case byDryRun:
		return &k.DryRun, &k.DryRunError
	case bySlotTime:
		return &k.SlotMS, &k.SlotMSError
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
