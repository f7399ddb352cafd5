package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// counts are how often a key came, and how often it was refused, in truth.
type counts [2]uint64

// TestManyZones: an instance with 1,000 zones reports those with the most requests, and says how many it omits.
func TestManyZones(t *testing.T) {
	r := &Report{Name: "host (process 1)"}
	for i := range 1000 {
		r.Zones = append(r.Zones, Zone{
			Name: fmt.Sprintf("a zone with a rather long name %d", i), Digest: "01234567", Totals: map[string]uint64{"allowed": uint64(i), "limited": 1},
		})
	}
	text := Encode(r, store.MaxReport)
	read, err := Decode(text, store.MaxReport)
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Zones)+read.Omitted.Zones != 1000 || len(read.Zones) < 200 || read.Zones[0].Name != "a zone with a rather long name 999" || read.Omitted.String() == "" {
		t.Errorf("%d zones, %+v, the first is %q", len(read.Zones), read.Omitted, read.Zones[0].Name)
	}
	all := &Report{Name: "me"}
	if differs := differing(all, read); differs != nil {
		t.Errorf("zones that may have been omitted differ: %v", differs)
	}
}

// TestLies: what cannot be a report is not believed.
func TestLies(t *testing.T) {
	good := `{"form":1,"name":"x","zones":[{"z":"z","d":"1","t":{"allowed":5},"k":{"u":[1],"k":[{"key":"k","c":[1,2]}]}}]}`
	if _, err := Decode(good, store.MaxReport); err != nil {
		t.Fatal(err)
	}
	for name, lie := range map[string]string{
		"nothing":            "",
		"no JSON":            "x",
		"another form":       strings.Replace(good, `"form":1`, `"form":2`, 1),
		"no name":            strings.Replace(good, `"name":"x"`, `"name":""`, 1),
		"a huge count":       strings.Replace(good, `"allowed":5`, `"allowed":18446744073709551615`, 1),
		"a negative count":   strings.Replace(good, `"allowed":5`, `"allowed":-5`, 1),
		"another outcome":    strings.Replace(good, "allowed", "invented", 1),
		"a huge bound":       strings.Replace(good, `"u":[1]`, `"u":[9223372036854775807]`, 1),
		"a huge key count":   strings.Replace(good, `"c":[1,2]`, `"c":[1,9223372036854775807]`, 1),
		"too many counts":    strings.Replace(good, `"c":[1,2]`, `"c":[1,2,3,4,5,6,7,8,9]`, 1),
		"a bad key":          strings.Replace(good, `"key":"k"`, `"key":"k","key_base64":"!"`, 1),
		"a negative rate":    strings.Replace(good, `"form":1`, `"form":1,"rate":-1`, 1),
		"an unknown level":   strings.Replace(good, `"form":1`, `"form":1,"diagnosis":{"findings":[{"level":"x"}]}`, 1),
		"a wait beyond":      strings.Replace(good, `"form":1`, `"form":1,"diagnosed":9223372036854775807`, 1),
		"the year 10000":     strings.Replace(good, `"form":1`, `"form":1,"since":253402300800000`, 1),
		"its clock beyond":   strings.Replace(good, `"form":1`, `"form":1,"now":253402300800000`, 1),
		"a list beyond":      strings.Replace(good, `"u":[1]`, `"s":253402300800000,"u":[1]`, 1),
		"a long name":        strings.Replace(good, `"name":"x"`, `"name":"`+strings.Repeat("x", 5000)+`"`, 1),
		"more than a report": good + strings.Repeat(" ", store.MaxReport),
	} {
		if r, err := Decode(lie, store.MaxReport); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestView: what is known of instances from their reports.
func TestView(t *testing.T) {
	zone := func(digest string) []Zone { return []Zone{{Name: "z", Digest: digest}} }
	text := func(name, config, digest string, rate float64) string {
		return Encode(&Report{Name: name, Config: config, Rate: rate, Now: 1_000_000, Zones: zone(digest)}, store.MaxReport)
	}
	written := time.UnixMilli(999_000)
	mine := &Report{Name: "me", Config: "c", Rate: 30, Zones: zone("d")}
	v := NewView("me", mine, []store.Report{
		{Process: "me", Lives: true, Text: text("me", "c", "d", 1)},
		{Process: "1", Lives: true, Text: text("well", "c", "d", 10), Age: time.Second, Written: written},
		{Process: "2", Lives: true, Text: text("hangs", "c", "d", 10), Age: 7 * time.Second},
		{Process: "3", Lives: true},
		{Process: "4", Left: true, Lives: true, Text: text("left", "c", "d", 10)},
		{Process: "5", Text: text("killed", "c", "d", 10), Age: 20 * time.Second},
		{Process: "6", Lives: true, Text: text("other", "o", "e", 0)},
		{Process: "7", Lives: true, Text: "rubbish"},
		{Process: "8"},
	})
	got := make(map[string]string)
	for _, m := range v.Members {
		got[m.Name] = fmt.Sprintf("%s %v%v", m.State, m.Share, m.Differs)
		if m.Name == "well" && m.ClockAhead != 1 {
			t.Errorf("its clock is %v ahead", m.ClockAhead)
		}
	}
	for name, want := range map[string]string{
		"me": "here 0.75[]", "well": "reports 0.25[]", "hangs": "silent 0[]", "3": "mute 0[]", "left": "left 0[]", "killed": "left 0[]", "other": "reports 0[z]", "7": "mute 0[]",
	} {
		if got[name] != want {
			t.Errorf("%s: %s, want %s", name, got[name], want)
		}
	}
	if len(v.Members) != 8 || len(v.Notes) != 1 || !v.Misses(new(Looker)) || v.Members[0].Name != "me" {
		t.Errorf("%d members, notes %q", len(v.Members), v.Notes)
	}
	v.Doubt() // the store does not answer: nothing follows from what was not heard lately
	for _, m := range v.Members {
		want := got[m.Name]
		switch m.Name {
		case "hangs", "3", "killed", "7":
			want = "unknown 0[]"
		}
		if doubted := fmt.Sprintf("%s %v%v", m.State, m.Share, m.Differs); doubted != want {
			t.Errorf("in doubt, %s: %s, want %s", m.Name, doubted, want)
		}
	}
	if NewView("me", mine).Misses(new(Looker)) || NewView("me", mine, []store.Report{{Process: "1", Lives: true, Text: text("well", "c", "d", 10)}}).Misses(new(Looker)) {
		t.Error("a report is missing")
	}
}

// TestMisses: a look waits for what doctor finds for it, or finds later for another one. It waits only once for an instance that
// reports nothing.
func TestMisses(t *testing.T) {
	mine := &Report{Name: "me"}
	view := func(r Report, age time.Duration) *View {
		r.Name = "other"
		return NewView("me", mine, []store.Report{{Process: "1", Lives: true, Text: Encode(&r, store.MaxReport), Age: age}})
	}
	found := new(adminapi.Diagnosis)
	for name, c := range map[string]struct {
		of    *View
		looks Looker
		want  bool
	}{
		"no wish":                      {view(Report{}, time.Second), Looker{}, false},
		"an old report":                {view(Report{}, 5*time.Second), Looker{}, true},
		"no diagnosis":                 {view(Report{}, time.Second), Looker{Wish: "a", Waited: time.Minute}, true},
		"its diagnosis":                {view(Report{Diagnosis: found, Wish: "a", Diagnosed: 5000}, time.Second), Looker{Wish: "a", Waited: time.Second}, false},
		"one of somebody else, before": {view(Report{Diagnosis: found, Wish: "b", Diagnosed: 5000}, time.Second), Looker{Wish: "a", Waited: 6 * time.Second}, true},
		"one of somebody else, later":  {view(Report{Diagnosis: found, Wish: "b", Diagnosed: 5000}, time.Second), Looker{Wish: "a", Waited: 6001 * time.Millisecond}, false},
		"one of an older version":      {view(Report{Diagnosis: found, Wish: "b"}, time.Second), Looker{Wish: "a", Waited: time.Minute}, true},
		"only a time":                  {view(Report{Diagnosed: 1}, time.Second), Looker{Wish: "a", Waited: time.Minute}, true},
	} {
		if got := c.of.Misses(&c.looks); got != c.want {
			t.Errorf("%s: misses something: %v", name, got)
		}
	}
	mute := NewView("me", mine, []store.Report{{Process: "1", Lives: true}})
	if !mute.Misses(new(Looker)) || mute.Misses(&Looker{Wish: "a", Mute: mute.Muted()}) {
		t.Error("somebody waits not once for an instance that reports nothing")
	}
	if v := view(Report{}, 5*time.Second); len(v.Muted()) != 0 || !v.Misses(&Looker{Mute: map[string]bool{"1": true}}) {
		t.Error("nobody waits for an instance that has reported again")
	}
}

// TestNobodyWaitsForTheOverdue: a look waits for an instance that may still report, and not for one that hangs, because it was
// not counted in time or is counted and says nothing.
func TestNobodyWaitsForTheOverdue(t *testing.T) {
	mine := &Report{Name: "me"}
	text := Encode(&Report{Name: "other"}, store.MaxReport)
	for name, c := range map[string]struct {
		of    store.Report
		looks Looker
		want  bool
	}{
		"it is soon counted":                   {store.Report{Counted: 4 * time.Second}, Looker{Looked: time.Second}, true},
		"it should have been counted":          {store.Report{Counted: 7001 * time.Millisecond}, Looker{}, false},
		"it was just counted":                  {store.Report{Counted: time.Second}, Looker{Looked: 2 * time.Second}, true},
		"it was counted, and says nothing":     {store.Report{Counted: time.Second}, Looker{Looked: 4 * time.Second}, false},
		"it has reported to somebody else":     {store.Report{Text: text, Age: time.Minute / 2, Counted: time.Second}, Looker{}, true},
		"it no longer reports":                 {store.Report{Text: text, Age: 5 * time.Second, Counted: 4 * time.Second}, Looker{Looked: time.Minute}, false},
		"it reports":                           {store.Report{Text: text, Age: 3 * time.Second}, Looker{}, false},
		"it may grant the wish":                {store.Report{Text: text, Age: 3 * time.Second}, Looker{Wish: "a", Looked: time.Minute}, true},
		"it should have reported, with a wish": {store.Report{Text: text, Age: 3100 * time.Millisecond, Counted: time.Second}, Looker{Wish: "a", Looked: time.Minute}, false},
	} {
		c.of.Process, c.of.Lives = "1", true
		if got := NewView("me", mine, []store.Report{c.of}).Misses(&c.looks); got != c.want {
			t.Errorf("%s: misses something: %v", name, got)
		}
	}
}

// TestVersions: instances of a fleet may have other versions of the module. What is new in a report is ignored, and the report of
// another form is told, and not read.
func TestVersions(t *testing.T) {
	mine := &Report{Name: "me", Version: "v1.0.0", Zones: []Zone{{Name: "z", Digest: "d"}}}
	report := func(change ...string) string {
		text := Encode(&Report{Name: "other", Version: "v1.1.0", Requests: 5, Zones: []Zone{{Name: "z", Digest: "d", Totals: map[string]uint64{"allowed": 5}}}}, store.MaxReport)
		return strings.NewReplacer(change...).Replace(text)
	}
	view := func(text string) (*View, *Member) {
		v := NewView("me", mine, []store.Report{{Process: "1", Lives: true, Text: text}})
		return v, &v.Members[1]
	}
	v, m := view(report(`{"form":1,`, `{"form":1,"new":[{"x":1}],`, `"z":"z",`, `"z":"z","also":{"y":2},`))
	if m.State != adminapi.StateReports || m.Requests != 5 || m.Version != "v1.1.0" || len(m.Report.Zones) != 1 || len(m.Differs) != 0 || len(v.Notes) != 0 {
		t.Errorf("with new fields: %+v, notes %q", m, v.Notes)
	}
	v, m = view(report(`{"form":1,`, `{"form":2,`, `"zones":[`, `"zones":{},"all":[`))
	if m.State != adminapi.StateMute || m.Report != nil || m.Requests != 0 || len(v.Notes) != 1 || !strings.Contains(v.Notes[0], "another version") {
		t.Errorf("of another form: %+v, notes %q", m, v.Notes)
	}
}

// TestSeveralStores: what an instance reports to several stores is added up, and instances of one name are told apart.
func TestSeveralStores(t *testing.T) {
	text := func(zone string, rate float64) string {
		return Encode(&Report{
			Name: "container (process 1)", Rate: rate, Requests: 7, Zones: []Zone{{Name: zone, Digest: "d"}},
			Decisions: []adminapi.Decision{{Zone: zone, Outcome: "limited"}}, Skipped: 1,
		}, store.MaxReport)
	}
	board := func(zone string) []store.Report {
		return []store.Report{
			{Process: "bbbbbbbb", Lives: true, Text: text(zone, 10), Written: time.UnixMilli(0)},
			{Process: "aaaaaaaa", Lives: true, Text: text("z", 10), Written: time.UnixMilli(0)},
		}
	}
	mine := &Report{Name: "me", Rate: 10}
	v := NewView("me", mine, board("z"), board("y"))
	if len(v.Members) != 3 || v.Members[1].Name != "container (process 1) aaaaaa" || v.Members[2].Name != "container (process 1) bbbbbb" {
		t.Fatalf("%+v", v.Members)
	}
	once, twice := v.Members[1], v.Members[2]
	if once.Requests != 7 || once.Rate != 10 || len(once.Report.Decisions) != 1 || once.Share != 0.25 {
		t.Errorf("two stores with one set of zones: %+v", once)
	}
	if twice.Requests != 14 || twice.Rate != 20 || len(twice.Report.Decisions) != 2 || twice.Report.Skipped != 2 || twice.Share != 0.5 {
		t.Errorf("two stores: %+v", twice)
	}
}
