package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// The kinds of counts of a key.
const (
	byRequests = iota
	byRefused
	byDryRun
	kinds
)

// kindNames are the names of these kinds in the admin API.
var kindNames = [kinds]string{"requests", "refused", "dry_run"}

// Keys are the most frequent keys of a zone by each kind of count, as an instance has counted them.
type Keys struct {
	Since    time.Time           `json:"s,omitzero"`
	Keys     []adminapi.KeyCount `json:"k,omitempty"`
	Unlisted [kinds]uint64       `json:"u"` // the largest count of each kind that a key may have which is not listed
}

// NewKeys returns the keys of several lists of a zone, one by each kind. Without a list by a kind, no key has such a count.
func NewKeys(lists ...adminapi.Top) *Keys {
	l, listed := new(Keys), make(map[id]bool)
	for _, list := range lists {
		if list.Since != nil {
			l.Since = *list.Since
		}
		l.Unlisted[kindOf(list.By)] = list.Unlisted
		for i := range list.Keys {
			if key := keyID(&list.Keys[i].KeyText); !listed[key] {
				listed[key] = true
				l.Keys = append(l.Keys, list.Keys[i])
			}
		}
	}
	return l
}

// cut keeps the n first keys by each kind.
func (l *Keys) cut(n int) {
	kept := make(map[id]bool)
	for kind := range kinds {
		slices.SortStableFunc(l.Keys, func(a, b adminapi.KeyCount) int { return cmp.Compare(count(&b, kind), count(&a, kind)) })
		for i := range l.Keys[:min(n, len(l.Keys))] {
			if k := &l.Keys[i]; count(k, kind) > 0 {
				kept[keyID(&k.KeyText)] = true
			}
		}
	}
	l.Keys = slices.DeleteFunc(l.Keys, func(k adminapi.KeyCount) bool {
		if kept[keyID(&k.KeyText)] {
			return false
		}
		for kind := range kinds {
			least, more := countOf(&k, kind)
			l.Unlisted[kind] = max(l.Unlisted[kind], *least+*more)
		}
		return true
	})
}

// Of returns the counts of a key; nil if it is not listed.
func (l *Keys) Of(text *adminapi.KeyText) *adminapi.KeyCount {
	if l != nil {
		for i := range l.Keys {
			if keyID(&l.Keys[i].KeyText) == keyID(text) {
				return &l.Keys[i]
			}
		}
	}
	return nil
}

// Merge adds up the keys of a zone, of several instances, and lists up to n by a kind. An instance that does not list a key may
// have counted it up to a bound, so the sum is uncertain by as much.
func Merge(of []*Keys, zone, by string, n int) adminapi.Top {
	kind, listed := kindOf(by), make(map[id]bool)
	sum, all := adminapi.Top{Zone: zone, By: by}, []adminapi.KeyCount{}
	for _, l := range of {
		sum.Unlisted += l.Unlisted[kind]
		if !l.Since.IsZero() && (sum.Since == nil || l.Since.Before(*sum.Since)) {
			sum.Since = &l.Since
		}
		for i := range l.Keys {
			if key := keyID(&l.Keys[i].KeyText); !listed[key] {
				listed[key] = true
				all = append(all, adminapi.KeyCount{KeyText: l.Keys[i].KeyText})
			}
		}
	}
	for _, l := range of {
		counted := make(map[id]*adminapi.KeyCount)
		for i := range l.Keys {
			counted[keyID(&l.Keys[i].KeyText)] = &l.Keys[i]
		}
		for i := range all {
			l.addTo(&all[i], counted[keyID(&all[i].KeyText)])
		}
	}
	slices.SortStableFunc(all, func(a, b adminapi.KeyCount) int { return cmp.Compare(count(&b, kind), count(&a, kind)) })
	end := 0
	for end < min(n, len(all)) && count(&all[end], kind) > 0 {
		end++
	}
	for i := range all[end:] {
		least, more := countOf(&all[end+i], kind)
		sum.Unlisted = max(sum.Unlisted, *least+*more)
	}
	sum.Keys = all[:end]
	return sum
}

// addTo adds the counts of an instance to those of a key, which are nil if the instance does not list it.
func (l *Keys) addTo(sum, counted *adminapi.KeyCount) {
	for kind := range kinds {
		least, more := countOf(sum, kind)
		if counted == nil {
			*more += min(l.Unlisted[kind], l.Unlisted[byRequests]) // what is refused is a request
			continue
		}
		n, uncertain := countOf(counted, kind)
		*least, *more = *least+*n, *more+*uncertain
	}
	if counted != nil {
		sum.Plan = cmp.Or(counted.Plan, sum.Plan)
	}
}

// kindOf returns a kind by its name.
func kindOf(name string) int { return max(byRequests, slices.Index(kindNames[:], name)) }

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

// count returns what a key has for certain.
func count(k *adminapi.KeyCount, kind int) uint64 {
	least, _ := countOf(k, kind)
	return *least
}

// id tells keys apart.
type id struct {
	text, base64 string
	length       int
}

func keyID(t *adminapi.KeyText) id { return id{t.Key, t.KeyBase64, t.Truncated} }
