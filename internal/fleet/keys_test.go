package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// listOf returns a list of a sketch, as the admin API has it.
func listOf(r *topk.Recent, n int, by topk.Kind) adminapi.Top {
	entries, unlisted, _ := r.Top(n, by)
	list := adminapi.Top{Zone: "z", By: adminapi.Kinds[by], Unlisted: unlisted}
	for _, e := range entries {
		list.Keys = append(list.Keys, adminapi.KeyCount{
			KeyText:  adminapi.NewKeyText(e.Key, e.Length),
			Requests: e.Counts[topk.Requests].AtLeast, RequestsError: e.Counts[topk.Requests].Error,
			Refused: e.Counts[topk.Refused].AtLeast, RefusedError: e.Counts[topk.Refused].Error,
		})
	}
	return list
}

// TestMerge: the sums over several instances are bounds of the true sums, also of keys that are not in the lists of all of them. So they are if the lists have come in reports.
func TestMerge(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	uncertain := 0
	for range 10 {
		truth := make(map[string]counts)
		var all, reported [2][]adminapi.Top // by kind
		for range 1 + random.IntN(4) {
			r, spread, length := topk.New(1<<40), 20+random.Float64()*180, 5+random.IntN(100)
			for range 5_000 {
				key, kind := fmt.Sprint(int(random.ExpFloat64()*spread)), topk.Requests
				is := truth[key]
				if is[0]++; random.IntN(3) == 0 {
					is[1]++
					kind = topk.Refused
				}
				truth[key] = is
				r.Add(key, "", kind)
			}
			for kind := range all {
				told := listOf(r, length, topk.Kind(kind))
				all[kind] = append(all[kind], told)
				told.Keys = slices.Clone(told.Keys)
				cut(&told, length/2)
				reported[kind] = append(reported[kind], told)
			}
		}
		for i, of := range [][]adminapi.Top{all[0], all[1], reported[0], reported[1]} {
			n := 1 + random.IntN(120)
			merged, last := Merge(of, n), uint64(1<<60)
			kind, listed := i%2, make(map[string]bool)
			for i := range merged.Keys {
				k := &merged.Keys[i]
				listed[k.Key] = true
				least, more := k.Count(merged.By)
				if is := truth[k.Key][kind]; is < *least || is > *least+*more {
					t.Fatalf("by %s: %q has %d, merged to %d and %d more", merged.By, k.Key, is, *least, *more)
				}
				if k.Requests > truth[k.Key][0] || k.Refused > truth[k.Key][1] {
					t.Fatalf("by %s: %+v is more than %v", merged.By, k, truth[k.Key])
				}
				if *more > 0 {
					uncertain++
				}
				if *least > last {
					t.Fatalf("by %s: place %d has more than the place before", merged.By, i)
				}
				last = *least
			}
			for key, is := range truth {
				if !listed[key] && is[kind] > merged.Unlisted {
					t.Fatalf("by %s: %q has %d and is not listed; at most %d are promised", merged.By, key, is[kind], merged.Unlisted)
				}
			}
			if len(merged.Keys) > n {
				t.Fatalf("%d keys, want at most %d", len(merged.Keys), n)
			}
		}
	}
	if uncertain == 0 {
		t.Error("no key is missing in a list")
	}
}
