package admin

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/fleet"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestRateOfReports: an instance that looks computes its rate just after it has sent a report, when no time has passed.
func TestRateOfReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reporter{at: time.Now()}
		for i, step := range []struct {
			pause    time.Duration
			requests uint64
			sent     bool
			want     float64
		}{
			{2 * time.Second, 100, true, 50},
			{0, 100, false, 50},
			{time.Millisecond, 103, false, 50},
			{time.Millisecond, 103, true, 50}, // the second turn of a board
			{1998 * time.Millisecond, 300, false, 100},
			{0, 20, true, 0}, // a reload has taken zones away
		} {
			time.Sleep(step.pause)
			if rate := r.measure(step.requests, step.sent); rate != step.want {
				t.Errorf("step %d: %v requests in a second, want %v", i, rate, step.want)
			}
		}
	})
}

// TestLastReport: when its store is closed, no config of an instance runs any more. It still reports what it has counted.
func TestLastReport(t *testing.T) {
	r := &reporter{last: &fleet.Report{
		Name: "x", Zones: []fleet.Zone{{Name: "z", Totals: map[string]uint64{"allowed": 7}}}, Decisions: []adminapi.Decision{{Outcome: "limited"}},
	}}
	defer r.rest()
	read, err := fleet.Decode(r.write(""), store.MaxReport)
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Zones) != 1 || read.Zones[0].Totals["allowed"] != 7 || read.Now == 0 || len(read.Decisions) != 0 {
		t.Errorf("%+v", read)
	}
}

// TestPageShowsOthersOnce: the page is sent the decisions of a report once, however often that is read.
func TestPageShowsOthersOnce(t *testing.T) {
	view := func(now int64) *fleet.View {
		m := fleet.Member{Report: &fleet.Report{Now: now, Decisions: []adminapi.Decision{{Outcome: "limited"}}}}
		m.ID, m.State = "x", adminapi.StateReports
		return &fleet.View{Members: []fleet.Member{{}, m}}
	}
	s := &seconds{others: &others{told: make(map[string]int64), seen: make(map[string]map[string]*reportedCounts)}}
	for i, step := range []struct{ now, want int64 }{{1, 1}, {1, 0}, {3, 1}, {2, 1}, {2, 0}} { // a clock may be set back
		s.others.view = view(step.now)
		event := new(adminapi.PageSecond)
		s.addOthers(event)
		if n := int64(len(event.Refused)); n != step.want {
			t.Errorf("step %d: %d decisions, want %d", i, n, step.want)
		}
	}
}

// TestWishes: people who wish to know what doctor finds at the same moment all get it: a wish waits until doctor has ended, and what
// was found for an earlier one is still told meanwhile.
func TestWishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		d := new(diagnosed)
		var runs atomic.Int64
		var fails atomic.Bool
		diagnose := func(context.Context) (found adminapi.Diagnosis, err error) {
			runs.Add(1)
			time.Sleep(3 * time.Second)
			if fails.Load() {
				err = context.Canceled
			}
			return found, err
		}
		began := time.Now()
		for i, step := range []struct {
			wish, told string
			age        time.Duration
			fails      bool
		}{
			{"a", "", 0, false},
			{"b", "", 0, false}, // a second and a third one, while doctor looks
			{"c", "a", 4 * time.Second, false},
			{"b", "a", 6 * time.Second, false},
			{"b", "c", 4 * time.Second, true},
			{"b", "c", 6 * time.Second, true},
			{"b", "c", 8 * time.Second, false}, // once more, after an error
			{"b", "c", 10 * time.Second, false},
			{"b", "b", 4 * time.Second, false},
			{"b", "b", 6 * time.Second, false},
		} {
			time.Sleep(time.Until(began.Add(time.Duration(i) * store.ReportInterval)))
			fails.Store(step.fails)
			last := d.of(step.wish, diagnose)
			if (last.found != nil) != (step.told != "") || last.wish != step.told || last.found != nil && time.Since(last.begun).Round(time.Second) != step.age {
				t.Errorf("step %d: what was found for %q %v ago, want %q and %v", i, last.wish, time.Since(last.begun), step.told, step.age)
			}
		}
		if time.Sleep(time.Minute); runs.Load() != 4 {
			t.Errorf("doctor looked %d times, want 4", runs.Load())
		}
	})
}

// TestMuteInstances: nobody waits a second time for an instance that reports nothing.
func TestMuteInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		mine := &fleet.Report{Name: "me"}
		waited(fleet.NewView("me", mine, []store.Report{{Process: "old", Lives: true}, {Process: "gone"}}))
		defer waited(fleet.NewView("me", mine))
		since, mute := lookedSince()
		if !mute["old"] || len(mute) != 1 || !since.Equal(time.Now()) {
			t.Errorf("mute are %v, since %v", mute, since)
		}
	})
}
