package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	reports "github.com/seed-161337e5/caddyratelimit/internal/fleet"
)

const byRequests = "requests"

// topKey is a key with the counts of all instances.
type topKey struct {
	zone string
	adminapi.KeyCount
}

// topList has the most frequent keys of all instances that answered.
type topList struct {
	keys   []topKey
	since  time.Time
	caddys int
}

// topLists gets the most frequent keys of a zone, or of all zones without a name. With --json it prints
// them, and returns nil.
func (f *fleet) topLists(zone, by string, n int) (*topList, error) {
	// A key that is frequent in the sum can have a low place in each list.
	more := min(1000, max(200, 4*n))
	if f.isOne() && f.about == "" || f.json {
		more = n
	}
	answers := f.fetchTops(zone, by, more)
	good, err := answered(f, answers)
	if f.json || good == nil {
		return nil, errors.Join(printAnswers(f, answers), err)
	}
	requests := make(map[string][]adminapi.Top) // the lists by requests, of each instance
	if by != byRequests && !f.isOne() {
		for _, a := range f.fetchTops(zone, byRequests, more) {
			if a.err == nil {
				requests[a.of.address] = a.value
			}
		}
		good = slices.DeleteFunc(good, func(a answer[[]adminapi.Top]) bool {
			_, ok := requests[a.of.address]
			if !ok { // nothing bounds what it does not list
				err = errors.Join(err, fmt.Errorf("%s does not answer any longer, so its keys are left out", a.of.address))
			}
			return !ok
		})
		if len(good) == 0 {
			return nil, err
		}
	}
	zones := make(map[string][]reports.Lists)
	for _, a := range good {
		for _, t := range a.value {
			lists := reports.Lists{t}
			if i := slices.IndexFunc(requests[a.of.address], func(other adminapi.Top) bool { return other.Zone == t.Zone }); i >= 0 {
				lists = append(lists, requests[a.of.address][i])
			}
			zones[t.Zone] = append(zones[t.Zone], lists)
		}
	}
	list := &topList{caddys: len(good)}
	for _, zone := range slices.Sorted(maps.Keys(zones)) {
		list.add(reports.Merge(zones[zone], n))
	}
	list.rank(by, n)
	return list, err
}

// fetchTops gets the lists of each instance.
func (f *fleet) fetchTops(zone, by string, n int) []answer[[]adminapi.Top] {
	path, query := topQuery(zone, by, n)
	if zone == "" {
		return fetchAll[[]adminapi.Top](f, path, query)
	}
	var lists []answer[[]adminapi.Top]
	for _, a := range fetchAll[adminapi.Top](f, path, query) {
		lists = append(lists, answer[[]adminapi.Top]{a.of, []adminapi.Top{a.value}, a.text, a.err})
	}
	return lists
}

// topQuery returns what to ask for the most frequent keys of a zone, or of all zones without a name.
func topQuery(zone, by string, n int) (path string, query url.Values) {
	query = url.Values{"n": {strconv.Itoa(n)}}
	if by != byRequests {
		query.Set("by", by)
	}
	if zone == "" {
		return "top", query
	}
	return zonePath(zone, "/top"), query
}

// add adds the keys of a zone to the list.
func (l *topList) add(t adminapi.Top) {
	if t.Since != nil && (l.since.IsZero() || t.Since.Before(l.since)) {
		l.since = *t.Since
	}
	for _, k := range t.Keys {
		l.keys = append(l.keys, topKey{t.Zone, k})
	}
}

// rank sorts the keys of all zones, and keeps the first n.
func (l *topList) rank(by string, n int) {
	slices.SortStableFunc(l.keys, func(a, b topKey) int {
		return cmp.Compare(reports.Count(&b.KeyCount, by), reports.Count(&a.KeyCount, by))
	})
	l.keys = l.keys[:min(n, len(l.keys))]
}
