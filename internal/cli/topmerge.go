package cli

import (
	"cmp"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// This file adds up the most frequent keys of several instances.

const (
	byRequests = "requests"
	bySlotTime = "slot_time"
)

// topKey is a key with the counts of all instances.
type topKey struct {
	zone string
	adminapi.KeyCount
}

// topList has the most frequent keys of all instances that answered.
type topList struct {
	keys   []topKey
	lives  map[string]*adminapi.Life // of the zones
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
	if f.isOne() {
		list := &topList{caddys: 1}
		for i := range good[0].value {
			list.add(new(topSum).add(&good[0].value[i], nil), n)
		}
		list.rank(by, n)
		return list, nil
	}
	byAll := make(map[string][]adminapi.Top) // the lists by requests, of each instance
	if by != byRequests {
		for _, a := range f.fetchTops(zone, byRequests, more) {
			byAll[a.of.address] = a.value
		}
	}
	sums := make(map[string]*topSum)
	for _, a := range good {
		for i := range a.value {
			t := &a.value[i]
			if sums[t.Zone] == nil {
				sums[t.Zone] = new(topSum)
			}
			var requests *adminapi.Top
			all := byAll[a.of.address]
			if j := slices.IndexFunc(all, func(other adminapi.Top) bool { return other.Zone == t.Zone }); j >= 0 {
				requests = &all[j]
			}
			sums[t.Zone].add(t, requests)
		}
	}
	list := &topList{caddys: len(good)}
	for _, zone := range slices.Sorted(maps.Keys(sums)) {
		list.add(sums[zone], n)
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
func (l *topList) add(s *topSum, n int) {
	if since := s.since; since != nil && (l.since.IsZero() || since.Before(l.since)) {
		l.since = *since
	}
	if l.lives == nil {
		l.lives = make(map[string]*adminapi.Life)
	}
	l.lives[s.zone] = &s.life
	l.keys = append(l.keys, s.top(n)...)
}

// rank sorts the keys of all zones, and keeps the first n.
func (l *topList) rank(by string, n int) {
	slices.SortStableFunc(l.keys, func(a, b topKey) int { return cmp.Compare(count(&b.KeyCount, by), count(&a.KeyCount, by)) })
	l.keys = l.keys[:min(n, len(l.keys))]
}

// topSum adds up the lists of a zone, of several instances.
type topSum struct {
	zone, by string
	life     adminapi.Life
	since    *time.Time
	lists    []caddyTop
}

// caddyTop has the lists of a Caddy: the list in question, which is sorted by some kind, and if that is
// not by requests, the list by requests, too.
type caddyTop struct {
	list, requests *adminapi.Top
	keys           map[string]*adminapi.KeyCount
}

func (s *topSum) add(list, requests *adminapi.Top) *topSum {
	s.zone, s.by, s.life = list.Zone, list.By, list.Life
	if list.Since != nil && (s.since == nil || list.Since.Before(*s.since)) {
		s.since = list.Since
	}
	c := caddyTop{list, requests, make(map[string]*adminapi.KeyCount)}
	for _, t := range []*adminapi.Top{requests, list} {
		if t != nil {
			for i := range t.Keys {
				c.keys[keyID(&t.Keys[i].KeyText)] = &t.Keys[i]
			}
		}
	}
	s.lists = append(s.lists, c)
	return s
}

// keyID returns what tells a key of a list apart from the others.
func keyID(t *adminapi.KeyText) string {
	return t.Key + "\x00" + t.KeyBase64 + "\x00" + strconv.Itoa(t.Truncated)
}

// top returns up to n keys, sorted like the lists.
func (s *topSum) top(n int) (top []topKey) {
	seen := make(map[string]bool)
	for _, c := range s.lists {
		for i := range c.list.Keys {
			k := &c.list.Keys[i]
			if id := keyID(&k.KeyText); !seen[id] {
				seen[id] = true
				top = append(top, topKey{s.zone, s.sum(id, k.KeyText)})
			}
		}
	}
	if len(s.lists) > 1 {
		slices.SortStableFunc(top, func(a, b topKey) int { return cmp.Compare(count(&b.KeyCount, s.by), count(&a.KeyCount, s.by)) })
	}
	return top[:min(n, len(top))]
}

// count returns the count of a kind.
func count(k *adminapi.KeyCount, by string) uint64 {
	switch by {
	case "refused":
		return k.Refused
	case "dry_run":
		return k.DryRun
	case bySlotTime:
		return k.SlotMS
	}
	return k.Requests
}

// sum adds up the counts of a key. A Caddy that does not list the key may have counted it up to a
// bound: then the sum is uncertain by as much.
func (s *topSum) sum(id string, text adminapi.KeyText) adminapi.KeyCount {
	sum := adminapi.KeyCount{KeyText: text}
	for _, c := range s.lists {
		if k := c.keys[id]; k != nil {
			sum.Plan = cmp.Or(k.Plan, sum.Plan)
			sum.Requests, sum.RequestsError = sum.Requests+k.Requests, sum.RequestsError+k.RequestsError
			sum.Refused, sum.RefusedError = sum.Refused+k.Refused, sum.RefusedError+k.RefusedError
			sum.DryRun, sum.DryRunError = sum.DryRun+k.DryRun, sum.DryRunError+k.DryRunError
			sum.SlotMS, sum.SlotMSError = sum.SlotMS+k.SlotMS, sum.SlotMSError+k.SlotMSError
			continue
		}
		most := c.list.Unlisted
		if c.requests != nil {
			most = c.requests.Unlisted
		}
		sum.RequestsError += most
		sum.RefusedError += c.most("refused", most)
		sum.DryRunError += c.most("dry_run", most)
		if c.list.By == bySlotTime { // other lists do not bound it, and do not show it
			sum.SlotMSError += c.list.Unlisted
		}
	}
	return sum
}

// most returns how often a key that the instance does not list may have been counted in one kind, if
// it has come at most so often.
func (c *caddyTop) most(by string, requests uint64) uint64 {
	if c.list.By == by {
		return min(requests, c.list.Unlisted)
	}
	return requests
}
