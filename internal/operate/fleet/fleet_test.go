package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestManyZones: an instance with 1,000 zones reports those with the most requests, and says how many it omits.
func TestManyZones(t *testing.T) {
	r := &Report{Name: "host (process 1)"}
	for i := 999; i >= 0; i-- {
		r.Zones = append(r.Zones, Zone{
			Name: fmt.Sprintf("a zone with a rather long name %d", i), Definition: "01234567", ZoneCounts: adminapi.ZoneCounts{Totals: map[string]uint64{"allowed": uint64(i), "limited": 1}},
		})
	}
	text := Encode(r)
	read, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > store.MaxReport || len(read.Zones) < 200 || read.Zones[0].Name != "a zone with a rather long name 999" || read.Omitted != fmt.Sprintf("%d zones with the fewest requests", 1000-len(read.Zones)) {
		t.Errorf("%d zones, omitted %q, the first is %q", len(read.Zones), read.Omitted, read.Zones[0].Name)
	}
	all := &Report{Name: "me"}
	if differs := differing(all, read); differs != nil {
		t.Errorf("zones that may have been omitted differ: %v", differs)
	}
}

// TestLies: what cannot be a report is not read, nor one with numbers that cannot be true and would overflow sums.
func TestLies(t *testing.T) {
	good := `{"form":5,"name":"x","now":"2026-01-02T03:04:05Z","zones":[{"name":"z","definition":"1","totals":{"allowed":5},"tops":[[{"key":"k","requests":2}],[]]}]}`
	if _, err := Decode(good); err != nil {
		t.Fatal(err)
	}
	for name, lie := range map[string]string{
		"nothing":          "",
		"no JSON":          "x",
		"another form":     strings.Replace(good, `"form":5`, `"form":4`, 1),
		"no name":          strings.Replace(good, `"name":"x"`, `"name":""`, 1),
		"a negative count": strings.Replace(good, `"allowed":5`, `"allowed":-5`, 1),
		"a huge count":     strings.Replace(good, `"allowed":5`, `"allowed":18446744073709551615`, 1),
		"a huge key":       strings.Replace(good, `"requests":2`, `"requests":9223372036854775807`, 1),
		"a huge rate":      strings.Replace(good, `"form":5`, `"form":5,"rate":1e308`, 1),
		"the year 10000":   strings.Replace(good, `"now":"2026`, `"now":"10000`, 1),
	} {
		if r, err := Decode(lie); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestView: what is known of instances from their reports.
func TestView(t *testing.T) {
	zone := func(digest string) []Zone { return []Zone{{Name: "z", Definition: digest}} }
	written := time.UnixMilli(999_000)
	text := func(name, digest string, rate float64) string {
		return Encode(&Report{Name: name, Rate: rate, Now: written.Add(time.Second), Zones: zone(digest)})
	}
	brief := Encode(&Report{Name: "brief", Zones: zone("e")})
	mine := &Report{Name: "me", Rate: 30, Zones: zone("d")}
	v := NewView("me", mine, []store.Report{
		{Process: "me", Lives: true, Text: text("me", "d", 1)},
		{Process: "1", Lives: true, Text: text("well", "d", 10), Age: time.Second, At: written},
		{Process: "2", Lives: true, Text: text("hangs", "d", 10), Age: 9 * time.Second},
		{Process: "3", Lives: true},
		{Process: "4", Left: true, Lives: true, Text: text("left", "d", 10)},
		{Process: "5", Text: text("killed", "d", 10), Age: 20 * time.Second},
		{Process: "6", Lives: true, Text: text("other", "e", 0)},
		{Process: "7", Lives: true, Text: "rubbish"},
		{Process: "8"},
		{Process: "9", Lives: true, Text: brief},
		{Process: "10", Text: brief},
	})
	got := make(map[string]string)
	for _, m := range v.Members {
		got[m.Name] = fmt.Sprint(m.State, m.Differs)
	}
	for name, want := range map[string]string{
		"me": "here[]", "well": "reports[]", "hangs": "silent[]", "3": "mute[]", "left": "left[]", "killed": "left[]", "other": "reports[z]", "7": "mute[]",
		"brief": "mute[z]",
	} {
		if got[name] != want {
			t.Errorf("%s: %s, want %s", name, got[name], want)
		}
	}
	if len(v.Members) != 9 || len(v.Notes) != 1 || v.Members[0].Name != "me" {
		t.Errorf("%d members, notes %q", len(v.Members), v.Notes)
	}
}

// TestMisses: a look waits for the counts of an instance that tells who it is and is soon counted. It does not wait for one that
// is overdue, has left, or tells nothing.
func TestMisses(t *testing.T) {
	brief, all := Encode(&Report{Name: "other"}), Encode(&Report{Name: "other", Now: time.UnixMilli(1)})
	for name, c := range map[string]struct {
		of   store.Report
		want bool
	}{
		"it is soon counted":          {store.Report{Text: brief, Age: 4 * time.Second}, true},
		"it should have been counted": {store.Report{Text: brief, Age: mostAge + 1}, false},
		"it has left":                 {store.Report{Text: brief, Left: true}, false},
		"it tells nothing":            {store.Report{}, false},
		"it tells all":                {store.Report{Text: all}, false},
		"it hangs":                    {store.Report{Text: all, Age: silentAfter + 1}, false},
	} {
		c.of.Process, c.of.Lives = "1", true
		v := NewView("me", &Report{Name: "me"}, []store.Report{c.of})
		if got := v.Misses(); got != c.want {
			t.Errorf("%s: misses something: %v", name, got)
		}
	}
}

// TestVersions: instances of a fleet may have other versions of the module. What is new in a report is ignored, and the report of
// another form is told, and not read.
func TestVersions(t *testing.T) {
	mine := &Report{Name: "me", Zones: []Zone{{Name: "z", Definition: "d"}}}
	report := func(change ...string) string {
		text := Encode(&Report{Name: "other", Now: time.UnixMilli(1), Requests: 5, Zones: []Zone{{Name: "z", Definition: "d", ZoneCounts: adminapi.ZoneCounts{Totals: map[string]uint64{"allowed": 5}}}}})
		return strings.NewReplacer(change...).Replace(text)
	}
	view := func(text string) (*View, *Member) {
		v := NewView("me", mine, []store.Report{{Process: "1", Lives: true, Text: text}})
		return v, &v.Members[1]
	}
	v, m := view(report(`{"form":5,`, `{"form":5,"new":[{"x":1}],`, `"name":"z",`, `"name":"z","also":{"y":2},`))
	if m.State != adminapi.StateReports || m.Requests != 5 || len(m.Report.Zones) != 1 || len(m.Differs) != 0 || len(v.Notes) != 0 {
		t.Errorf("with new fields: %+v, notes %q", m, v.Notes)
	}
	v, m = view(report(`{"form":5,`, `{"form":6,`, `"zones":[`, `"zones":{},"all":[`))
	if m.State != adminapi.StateMute || m.Counts() || m.Requests != 0 || len(v.Notes) != 1 || !strings.Contains(v.Notes[0], "another version") {
		t.Errorf("of another form: %+v, notes %q", m, v.Notes)
	}
}

// TestSeveralStores: an instance that shares several stores reports the same to each, and counts once, by the youngest report of
// a store that it has not left.
func TestSeveralStores(t *testing.T) {
	text := func(requests uint64) string {
		return Encode(&Report{Name: "container (process 1)", Now: time.UnixMilli(1), Requests: requests})
	}
	v := NewView("me", &Report{Name: "me"}, []store.Report{
		{Process: "bbbbbbbb", Lives: true, Text: text(1), Age: 3 * time.Second},
		{Process: "aaaaaaaa", Lives: true, Text: text(2), Left: true},
		{Process: "cccccccc", Lives: true},
	}, []store.Report{
		{Process: "bbbbbbbb", Lives: true, Text: text(3), Age: 2 * time.Second},
		{Process: "aaaaaaaa", Lives: true, Text: text(4), Age: 4 * time.Second},
		{Process: "cccccccc", Lives: true, Text: text(5)},
	})
	got := ""
	for _, m := range v.Members[1:] {
		got += fmt.Sprintf("%.1s %s %d\n", m.ID, m.State, m.Requests)
	}
	if got != "b reports 3\na reports 4\nc reports 5\n" {
		t.Errorf("%s", got)
	}
}

// TestMerge: what instances have counted of a key is added up, also of keys that some do not list, and once of those that one lists twice. A key whose text is the
// beginning of several is told from the others.
func TestMerge(t *testing.T) {
	key := func(text, plan string, length int, requests, refused uint64) adminapi.KeyCount {
		return adminapi.KeyCount{KeyText: adminapi.NewKeyText(text, length), Plan: plan, Requests: requests, Refused: refused}
	}
	instances := [][]adminapi.KeyCount{
		{key("a", "free", 1, 50, 0), key("b", "", 1, 40, 30), key("\xff", "", 1, 1, 1), key("b", "", 1, 40, 30)},
		nil,
		{key("c", "", 1, 60, 1), key("b", "pro", 1, 41, 2), key("b", "", 300, 9, 9), key("\xfe", "", 1, 2, 2)},
	}
	for refused, want := range map[bool]string{
		false: "b pro 81 32; c  60 1; a free 50 0; ",
		true:  "b pro 81 32; b  9 9; \ufffd  2 2; ",
	} {
		got := ""
		for _, k := range Merge(instances, refused, 3) {
			got += fmt.Sprintf("%s %s %d %d; ", k.Key, k.Plan, k.Requests, k.Refused)
		}
		if got != want {
			t.Errorf("by refusals %v: %q, want %q", refused, got, want)
		}
	}
	if none := Merge([][]adminapi.KeyCount{nil}, false, 3); none == nil || len(none) > 0 {
		t.Errorf("%v is no empty list", none)
	}
}
