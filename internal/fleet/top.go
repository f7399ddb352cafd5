package fleet

import (
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// The kinds of counts of a key.
const (
	byRequests = iota
	byRefused
	byDryRun
	kinds
)

// Kinds are the names of these kinds in the admin API.
var Kinds = [kinds]string{"requests", "refused", "dry_run"}

// By returns the list of a zone by one kind, of up to n keys. If there is none, no key has such a count.
func (l Lists) By(zone, by string, n int) adminapi.Top {
	kind := kindOf(by)
	list := adminapi.Top{Zone: zone, By: Kinds[kind], Keys: []adminapi.KeyCount{}}
	for _, of := range l {
		if of.By == list.By {
			list.Since, list.Unlisted = of.Since, of.Unlisted
			list.Keys = append(list.Keys, of.Keys...)
		}
	}
	cut(&list, n)
	return list
}

// cut keeps the n first keys of a list. The others count as not listed.
func cut(list *adminapi.Top, n int) {
	kept := min(n, len(list.Keys))
	for _, k := range list.Keys[kept:] {
		least, more := countOf(&k, kindOf(list.By))
		list.Unlisted = max(list.Unlisted, *least+*more)
	}
	list.Keys = list.Keys[:kept]
}

// Of returns the counts of a key, if it is listed, and the list.
func (l Lists) Of(text *adminapi.KeyText) (of *adminapi.Top, counts *adminapi.KeyCount) {
	for i := range l {
		at := slices.IndexFunc(l[i].Keys, func(k adminapi.KeyCount) bool { return keyID(&k.KeyText) == keyID(text) })
		if at >= 0 {
			return &l[i], &l[i].Keys[at]
		}
	}
	return nil, nil
}

// id tells keys apart.
type id struct {
	text, base64 string
	length       int
}

func keyID(t *adminapi.KeyText) id { return id{t.Key, t.KeyBase64, t.Truncated} }
