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

func keyID(k *adminapi.KeyCount) id { return id{k.Key, k.KeyBase64, k.Truncated} }

// Top returns the keys of all lists, with the bound of that by a kind of count. Without lists, any key may have had all of the requests.
func (z *Zone) Top(by string) adminapi.Top {
	all, listed := adminapi.Top{Zone: z.Name, By: by, Unlisted: z.Requests()}, make(map[id]bool)
	for _, t := range z.Tops {
		if t.By == by {
			all.Unlisted, all.Since = t.Unlisted, t.Since
		}
		for _, k := range t.Keys {
			if of := keyID(&k); !listed[of] {
				listed[of] = true
				all.Keys = append(all.Keys, k)
			}
		}
	}
	return all
}

// cut keeps the n first keys of a list.
func cut(t *adminapi.Top, n int) {
	kept := t.Keys[:min(n, len(t.Keys))]
	for i := range t.Keys[len(kept):] {
		least, more := t.Keys[len(kept)+i].Count(t.By)
		t.Unlisted = max(t.Unlisted, *least+*more)
	}
	t.Keys = kept
}

// Merge adds up lists of a zone, of several instances, that are by the same kind of count, and lists up to n keys. An instance that
// does not list a key may have counted it up to a bound, so the sum is uncertain by as much; what it has counted of other kinds is
// not in the sum.
func Merge(lists []adminapi.Top, n int) adminapi.Top {
	sum, places := adminapi.Top{Zone: lists[0].Zone, By: lists[0].By, Keys: []adminapi.KeyCount{}}, make(map[id]int)
	for _, l := range lists {
		listed := make([]bool, len(sum.Keys))
		for _, k := range l.Keys {
			of := keyID(&k)
			if at, known := places[of]; known && at < len(listed) {
				listed[at] = true
				add(&sum.Keys[at], &k)
			} else if !known {
				places[of] = len(sum.Keys)
				uncertain(&k, sum.By, sum.Unlisted)
				sum.Keys = append(sum.Keys, k)
			}
		}
		for i, is := range listed {
			if !is {
				uncertain(&sum.Keys[i], sum.By, l.Unlisted)
			}
		}
		sum.Unlisted += l.Unlisted
		if l.Since != nil && (sum.Since == nil || l.Since.Before(*sum.Since)) {
			sum.Since = l.Since
		}
	}
	slices.SortStableFunc(sum.Keys, func(a, b adminapi.KeyCount) int {
		x, _ := a.Count(sum.By)
		y, _ := b.Count(sum.By)
		return cmp.Compare(*y, *x)
	})
	cut(&sum, n)
	sum.Keys = slices.DeleteFunc(sum.Keys, func(k adminapi.KeyCount) bool {
		least, _ := k.Count(sum.By)
		return *least == 0
	})
	return sum
}

// add adds the counts of an instance to those of a key.
func add(sum, k *adminapi.KeyCount) {
	sum.Plan = cmp.Or(k.Plan, sum.Plan)
	for _, by := range adminapi.Kinds {
		least, more := sum.Count(by)
		n, uncertain := k.Count(by)
		*least, *more = *least+*n, *more+*uncertain
	}
}

// uncertain makes a count of a key higher by up to more.
func uncertain(k *adminapi.KeyCount, by string, more uint64) {
	_, known := k.Count(by)
	*known += more
}
