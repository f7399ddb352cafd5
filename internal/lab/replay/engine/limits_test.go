package engine

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// clients returns n clients with a peak.
func clients(most int64, n int, human, shared bool) []*keyTally {
	k := &keyTally{key: "k", peak: peak{most: most}}
	k.person.signs[0] = human
	if shared {
		k.person.agents = [manyAgents]uint32{1, 2, 3}
	}
	return slices.Repeat([]*keyTally{k}, n)
}

// measured returns the sizes of some clients.
func measured(all ...[]*keyTally) sizes {
	return sizesOf(slices.Concat(all...), func(k *keyTally) int64 { return k.peak.most })
}

// TestSizes: the limit is above nearly all clients, twice above 99 % of them, and above each that looks
// like several people.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		name string
		all  [][]*keyTally
		want sizes
	}{
		{"nobody", nil, sizes{limit: 1, reference: 1}},
		{"one", [][]*keyTally{clients(7, 1, false, false)}, sizes{median: 7, p99: 7, limit: 15, reference: 7}},
		{
			"a scraper",
			[][]*keyTally{clients(10, 990, true, false), clients(20, 9, true, false), clients(5000, 1, false, false)},
			sizes{median: 10, p99: 10, people: 999, peopleMost: 20, limit: 20, reference: 10, above: 1, highest: []string{"k"}},
		},
		{
			"busy people",
			[][]*keyTally{clients(10, 1990, false, false), clients(61, 10, true, false)},
			sizes{median: 10, p99: 10, people: 10, peopleMost: 61, limit: 80, reference: 10},
		},
		{
			"an office among many people",
			[][]*keyTally{clients(10, 1998, true, false), clients(61, 1, true, true), clients(5000, 1, false, false)},
			sizes{median: 10, p99: 10, people: 1999, shared: 1, peopleMost: 61, limit: 80, reference: 10, above: 1, highest: []string{"k"}},
		},
	} {
		got := measured(c.all...)
		if n := len(got.peaks); n != len(slices.Concat(c.all...)) {
			t.Errorf("%s: %d clients", c.name, n)
		}
		got.peaks = nil
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestSuggest: a limit that some clients are above is suggested, and names them.
func TestSuggest(t *testing.T) {
	s := sizes{peaks: make([]int64, 1000), p99: 10, people: 999, peopleMost: 20, limit: 20, reference: 10, highest: []string{"203.0.113.7"}}
	for above, want := range []string{"", "20/1m"} {
		s.above = above
		got := s.suggest("/1m")
		look := strings.Contains(strings.Join(got.Reasons, "; "), "look at who is above it: 203.0.113.7")
		if got.Limit != want || look != (want != "") || (want == "") != (got.Failure == "no client has used more than 20/1m") {
			t.Errorf("%d above: %+v, want %q, and then who to look at", above, got, want)
		}
	}
	few := measured(clients(3, 50, false, false), clients(70, 48, false, false), clients(500, 1, false, false))
	const want = "of the 99 clients, half used at most 3/1m, all but one at most 70/1m, and nobody more than 500/1m"
	if got := few.suggest("/1m"); got.Failure != "too few clients to tell" || strings.Join(got.Reasons, "; ") != want {
		t.Errorf("of 99 clients: %+v, want %s", got, want)
	}
}

// TestRound: limits are round numbers.
func TestRound(t *testing.T) {
	var got []int64
	for n := int64(0); n < 300; n = got[len(got)-1] + 1 {
		got = append(got, round(n))
	}
	want := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200, 250, 300}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
