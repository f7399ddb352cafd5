package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// The kinds of counts of a key, in the order of the numbers in a report.
const (
	byRequests = iota
	byRefused
	byDryRun
	kinds
)

// Kinds are the names of these kinds in the admin API.
var Kinds = [kinds]string{"requests", "refused", "dry_run"}

// Top has the most frequent keys of a zone by each kind of count.
type Top struct {
	Since int64 `json:"s,omitempty"` // in milliseconds; 0: there were no requests

	// Unlisted is the largest count that a key which is not listed may have, by kind.
	Unlisted [kinds]uint64 `json:"u"`
	Keys     []Key         `json:"k"`

	// UnlistedBefore is, of networks, how many requests one that is not listed may have had ten minutes before.
	UnlistedBefore uint64 `json:"ub,omitempty"`
}

// Key is a key of a list.
type Key struct {
	adminapi.KeyText
	Plan string `json:"p,omitempty"`

	// Counts are, by kind, what was surely counted and how much more it may be. Zeros at the end are left out.
	Counts []uint64 `json:"c"`

	// Distinct is, of a network, about how many keys it has.
	Distinct uint64 `json:"n,omitempty"`

	// Before is, of a network, how many requests it surely had ten minutes before, and how many more they may be.
	Before [2]uint64 `json:"b,omitzero"`
}

// count returns a count of a key, and how much more it may be.
func (k *Key) count(kind int) (least, more uint64) {
	at := func(i int) uint64 {
		if i < len(k.Counts) {
			return k.Counts[i]
		}
		return 0
	}
	return at(2 * kind), at(2*kind + 1)
}

// NewTop makes one list of those by each kind.
func NewTop(lists []adminapi.Top) *Top {
	t := new(Top)
	listed := make(map[id]bool)
	for _, list := range lists {
		kind := slices.Index(Kinds[:], list.By)
		if kind < 0 {
			continue
		}
		t.Unlisted[kind] = list.Unlisted
		if list.Since != nil {
			t.Since = list.Since.UnixMilli()
		}
		for i := range list.Keys {
			k := &list.Keys[i]
			text := adminapi.KeyText{Key: k.Key, KeyBase64: k.KeyBase64, Truncated: k.Truncated}
			if known := keyID(&text); !listed[known] {
				listed[known] = true
				counts := []uint64{k.Requests, k.RequestsError, k.Refused, k.RefusedError, k.DryRun, k.DryRunError}
				t.Keys = append(t.Keys, Key{KeyText: text, Plan: k.Plan, Counts: trimmed(counts)})
			}
		}
	}
	return t
}

// trimmed returns counts without the zeros at their end.
func trimmed(counts []uint64) []uint64 {
	for len(counts) > 1 && counts[len(counts)-1] == 0 {
		counts = counts[:len(counts)-1]
	}
	return counts
}

// cut keeps the n first keys by each kind, and returns how many it has removed. These count as not listed.
func (t *Top) cut(n int) (removed int) {
	keep := make([]bool, len(t.Keys))
	for kind := range kinds {
		order := t.order(kind)
		for _, i := range order[:min(n, len(order))] {
			if least, more := t.Keys[i].count(kind); least+more > 0 {
				keep[i] = true
			}
		}
	}
	var kept []Key
	for i := range t.Keys {
		if keep[i] {
			kept = append(kept, t.Keys[i])
			continue
		}
		removed++
		for kind := range kinds {
			least, more := t.Keys[i].count(kind)
			t.Unlisted[kind] = max(t.Unlisted[kind], least+more)
		}
		t.UnlistedBefore = max(t.UnlistedBefore, t.Keys[i].Before[0]+t.Keys[i].Before[1])
	}
	t.Keys = kept
	return removed
}

// order returns the places of the keys, those with the highest counts of a kind first.
func (t *Top) order(kind int) []int {
	order := make([]int, len(t.Keys))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, _ := t.Keys[a].count(kind)
		y, _ := t.Keys[b].count(kind)
		return cmp.Compare(y, x)
	})
	return order
}

// List returns the list by one kind, as the admin API has it.
func (t *Top) List(zone, by string, n int) adminapi.Top {
	kind := max(0, slices.Index(Kinds[:], by))
	list := adminapi.Top{Zone: zone, By: Kinds[kind], Unlisted: t.Unlisted[kind], Keys: []adminapi.KeyCount{}}
	if t.Since > 0 {
		since := time.UnixMilli(t.Since)
		list.Since = &since
	}
	for _, i := range t.order(kind) {
		k := &t.Keys[i]
		least, more := k.count(kind)
		if kind != byRequests && least+more == 0 {
			continue
		}
		if len(list.Keys) == n {
			list.Unlisted = max(list.Unlisted, least+more)
			continue
		}
		list.Keys = append(list.Keys, k.counted())
	}
	return list
}

// before returns the list of networks with the requests of ten minutes before as their counts.
func (t *Top) before() adminapi.Top {
	list := adminapi.Top{By: Kinds[byRequests], Unlisted: t.UnlistedBefore}
	for i := range t.Keys {
		k := &t.Keys[i]
		list.Keys = append(list.Keys, adminapi.KeyCount{KeyText: k.KeyText, Requests: k.Before[0], RequestsError: k.Before[1]})
	}
	return list
}

// Of returns the counts of a key, if it is listed.
func (t *Top) Of(text *adminapi.KeyText) (adminapi.KeyCount, bool) {
	i := slices.IndexFunc(t.Keys, func(k Key) bool { return keyID(&k.KeyText) == keyID(text) })
	if i < 0 {
		return adminapi.KeyCount{}, false
	}
	return t.Keys[i].counted(), true
}

func (k *Key) counted() (c adminapi.KeyCount) {
	c.KeyText, c.Plan = k.KeyText, k.Plan
	c.Requests, c.RequestsError = k.count(byRequests)
	c.Refused, c.RefusedError = k.count(byRefused)
	c.DryRun, c.DryRunError = k.count(byDryRun)
	return c
}

// id tells keys apart.
type id struct {
	text, base64 string
	length       int
}

func keyID(t *adminapi.KeyText) id { return id{t.Key, t.KeyBase64, t.Truncated} }

func (t *Top) isPossible() bool {
	ok := t.Since >= 0 && t.Since <= mostTime && t.UnlistedBefore <= mostCount
	for _, n := range t.Unlisted {
		ok = ok && n <= mostCount
	}
	for i := range t.Keys {
		k := &t.Keys[i]
		_, err := k.Bytes()
		ok = ok && err == nil && isText(k.Key) && isText(k.Plan) && k.Parts == nil && k.Truncated >= 0 && len(k.Counts) <= 2*kinds && k.Distinct <= mostCount
		for _, n := range append(k.Before[:], k.Counts...) {
			ok = ok && n <= mostCount
		}
	}
	return ok
}
