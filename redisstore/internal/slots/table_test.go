package slots

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const slotLease, slotPeriod = time.Minute, 10 * time.Second

func at(d time.Duration) lend.Moment { return lend.Moment{Mono: d, Wall: d} }

// slotTable has requests of one key, of a limit of 10.
type slotTable struct {
	*Table
	rule *store.Rule
}

func newSlotTable(t *testing.T) *slotTable {
	t.Helper()
	rule, err := store.NewLendingRule("slots", algorithms.Concurrency{}, algorithms.Limit{Events: 10, Lease: slotLease}, 0, slotPeriod)
	if err != nil {
		t.Fatal(err)
	}
	return &slotTable{NewTable(), rule}
}

func (t *slotTable) check(leaseID string) *store.Check {
	return &store.Check{Rule: t.rule, Key: "k", Cost: 1, LeaseID: leaseID}
}

// told has the store admit a request, so that so much is free.
func (t *slotTable) told(leaseID string, now time.Duration, free int64, often bool) {
	d := algorithms.Decision{Allowed: true, Quota: 10, Remaining: free, At: now.Microseconds()}
	t.Told(t.check(leaseID), at(now), &d, true, often)
}

// says has the store say how much is free.
func (t *slotTable) says(now time.Duration, free int64) {
	t.Free(t.check(""), at(now), &algorithms.Decision{Remaining: free, At: now.Microseconds()})
}

// takes reports whether a request gets a slot that is kept.
func (t *slotTable) takes(leaseID string, now time.Duration) bool {
	_, ok := t.Get(t.check(leaseID), at(now))
	return ok
}

// kept checks how many slots are kept.
func (t *slotTable) kept(test *testing.T, want int64) {
	test.Helper()
	kept, keys := t.Kept()
	if kept["slots"] != want || keys["slots"] != min(want, 1) || t.KeptOf(t.rule, "k") != want || t.KeptOf(t.rule, "other") != 0 {
		test.Errorf("%d slots of %d keys are kept, want %d", kept["slots"], keys["slots"], want)
	}
}

// TestSlotsChangeHands: the slot of a request that has ended is that of the next one, whose decision says how much
// is left here. The store knows the slot by its first name until it is given back.
func TestSlotsChangeHands(t *testing.T) {
	t.Parallel()
	table := newSlotTable(t)
	if table.takes("nobody's", time.Second) {
		t.Error("an empty table has a slot")
	}
	table.told("first", time.Second, 6, true)
	if table.takes("early", time.Second) {
		t.Error("a request has the slot of one that has not ended")
	}
	table.kept(t, 0)
	if fate, _ := table.Release("first", at(2*time.Second), 1); fate != Kept {
		t.Fatalf("fate %d, want kept", fate)
	}
	table.kept(t, 1)
	d, ok := table.Get(table.check("second"), at(3*time.Second))
	if want := int64(3 * 1e6); !ok || !d.Allowed || d.Quota != 10 || d.Remaining != 6 || d.At != want {
		t.Errorf("%t, %+v, want 6 of 10 to remain at %d", ok, d, want)
	}
	table.kept(t, 0)

	// That the first request ends again takes nothing from the second one.
	if fate, _ := table.Release("first", at(3*time.Second), 1); fate != Kept || table.takes("third", 3*time.Second) {
		t.Errorf("fate %d, and the slot of a request that has not ended is taken", fate)
	}
	table.Cancel("second")
	table.Cancel("second")
	table.kept(t, 1)
	if !table.takes("third", 4*time.Second) {
		t.Fatal("the slot of a request that did not pass is lost")
	}
	// Nine others may keep as many: so one process may keep none.
	if fate, name := table.Release("third", at(5*time.Second), 10); fate != Back || name != "first" {
		t.Errorf("fate %d, name %q, want the slot to go back as the first one's", fate, name)
	}
	if fate, _ := table.Release("third", at(5*time.Second), 1); fate != Unknown {
		t.Errorf("fate %d of a slot that went back, want unknown", fate)
	}
}

// TestSlotsOfRareKeys: of a key that comes rarely, nothing is known, and no more keys are known than there is room for.
func TestSlotsOfRareKeys(t *testing.T) {
	t.Parallel()
	table := newSlotTable(t)
	table.told("rare", time.Second, 6, false)
	if fate, _ := table.Release("rare", at(time.Second), 1); fate != Unknown {
		t.Errorf("fate %d, want unknown", fate)
	}
	for i := range maxSlotKeys + 10 {
		c := table.check(strconv.Itoa(i))
		c.Key = c.LeaseID
		table.Told(c, at(time.Second), &algorithms.Decision{Allowed: true, Quota: 10, Remaining: 6}, true, true)
	}
	if n := len(table.keys); n != maxSlotKeys {
		t.Errorf("%d keys, want %d", n, maxSlotKeys)
	}
}

// TestSlotsAreRenewed: a slot is used for as long as its renewals were answered in time, whether a request has it or not.
func TestSlotsAreRenewed(t *testing.T) {
	t.Parallel()
	for _, renewed := range []bool{false, true} {
		table := newSlotTable(t)
		table.told("running", time.Second, 8, true)
		table.told("ended", time.Second, 7, true)
		table.Release("ended", at(time.Second), 1)
		later := time.Second + slotLease/2
		if renewed {
			for _, name := range []string{"running", "ended", "never known"} {
				table.Renewed(name, at(later), at(later))
			}
		}
		later += slotLease / 3 // the first leases last for less than a third
		table.says(later, 8)
		if got := table.takes("next", later); got != renewed {
			t.Errorf("renewed %t: taken %t", renewed, got)
		}
		later += slotLease / 4 // and now they are over
		table.says(later, 8)
		if fate, _ := table.Release("running", at(later), 1); (fate == Kept) != renewed {
			t.Errorf("renewed %t: fate %d", renewed, fate)
		}
	}
}

// TestSlotsThatEndGiveWay: a kept slot that was not renewed, in an outage for example, refuses no request of its own key. It goes
// back first, unless enough is free beside it.
func TestSlotsThatEndGiveWay(t *testing.T) {
	t.Parallel()
	for _, free := range []int64{8, 0} {
		table := newSlotTable(t)
		table.told("ended", time.Second, 7, true)
		table.Release("ended", at(time.Second), 1)
		later := time.Second + slotLease*5/6
		table.says(later, free)
		if table.takes("next", later) {
			t.Fatal("its lease lasts for less than a third, and it is used")
		}
		back := table.GiveWay(table.check("next"), at(later))
		if went := len(back) == 1 && back[0].LeaseID == "ended"; went != (free == 0) {
			t.Errorf("%d free: %v go back", free, back)
		}
	}
}

// TestSlotsGiveWayToWhatIsUnderWay: what the store said is free may be taken by now: by a request of a cost that comes rarely, by
// requests that are being asked about, or by one whose answer was overtaken. A slot that is kept goes back before the next request
// is refused because of it.
func TestSlotsGiveWayToWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	of := func(table *slotTable, cost int64) *store.Check {
		c := table.check("big")
		c.Cost = cost
		return c
	}
	for name, takes := range map[string]func(*slotTable){
		"nothing": func(*slotTable) {},
		"a rare cost": func(table *slotTable) {
			table.Told(of(table, 4), at(2*time.Second), &algorithms.Decision{Allowed: true, Quota: 10, Remaining: 3, At: 2e6}, true, false)
		},
		"under way": func(table *slotTable) { table.GiveWay(of(table, 4), at(2*time.Second)) },
		"overtaken": func(table *slotTable) {
			table.says(3*time.Second, 7)
			table.Told(of(table, 4), at(2*time.Second), &algorithms.Decision{Allowed: true, Quota: 10, Remaining: 3}, true, false)
		},
		"overtaken on the way": func(table *slotTable) {
			table.Told(of(table, 4), at(2*time.Second), &algorithms.Decision{Allowed: true, Quota: 10, Remaining: 3, At: 2_000_300}, true, false)
			table.Free(table.check(""), at(2*time.Second+1), &algorithms.Decision{Remaining: 7, At: 2_000_200})
		},
		"the clock was set back": func(table *slotTable) {
			table.Told(of(table, 4), at(2*time.Second), &algorithms.Decision{Allowed: true, Quota: 10, Remaining: 3, At: 1e12}, true, false)
			table.says(3*time.Second, 7)
		},
		"below a lower limit": func(table *slotTable) { table.says(2*time.Second, 0) },
		"answered": func(table *slotTable) {
			table.GiveWay(of(table, 4), at(2*time.Second))
			table.Answered(of(table, 4))
		},
		"a dry run": func(table *slotTable) {
			c := of(table, 4)
			c.Independent = true
			table.GiveWay(c, at(2*time.Second))
		},
	} {
		table := newSlotTable(t)
		table.told("ended", time.Second, 7, true)
		table.Release("ended", at(time.Second), 1)
		takes(table)
		back := table.GiveWay(of(table, 5), at(4*time.Second))
		if went, want := len(back) == 1, !slices.Contains([]string{"nothing", "answered", "a dry run", "the clock was set back"}, name); went != want {
			t.Errorf("%s is taken of 7: %v go back", name, back)
		}
	}
}

// TestSlotsAreDue: what no request needed for a period goes back, and what is free is asked for as long as it matters. Then
// the key is forgotten.
func TestSlotsAreDue(t *testing.T) {
	t.Parallel()
	table := newSlotTable(t)
	look := func(now time.Duration, want []string, peeks int) {
		t.Helper()
		back, asks := table.Due(at(now), 1)
		if names := holds(back); !slices.Equal(names, want) || len(asks) != peeks {
			t.Errorf("after %v: %v go back and %d peeks, want %v and %d", now, names, len(asks), want, peeks)
		}
		for _, c := range asks {
			if !c.Peek || c.Key != "k" || c.Cost != 1 || c.Rule != table.rule {
				t.Errorf("asks %+v", c)
			}
		}
	}
	began := time.Second
	table.told("a", began, 8, true)
	table.told("b", began, 7, true)
	look(began+slotPeriod/2, nil, 0)
	look(began+slotPeriod, nil, 1) // they run
	table.says(began+slotPeriod, 7)
	table.Release("a", at(began+slotPeriod), 1)
	table.Release("b", at(began+slotPeriod), 1)
	table.kept(t, 2)
	look(began+2*slotPeriod, nil, 1) // they were not kept for a period yet
	table.says(began+2*slotPeriod, 8)
	if !table.takes("c", began+2*slotPeriod) {
		t.Fatal("no slot")
	}
	table.Release("c", at(began+2*slotPeriod), 1)
	look(began+3*slotPeriod, []string{"a"}, 1) // one was enough
	table.says(began+3*slotPeriod, 9)
	look(began+4*slotPeriod, []string{"b"}, 0)
	if len(table.keys) != 0 || len(table.owners) != 0 || len(table.uses) != 0 {
		t.Errorf("%d keys, %d owners and %d uses are left", len(table.keys), len(table.owners), len(table.uses))
	}
}

// TestSlotsAreGivenUp: a reset gives up what is kept of its key, and the end gives up everything. What runs then goes
// back when it ends.
func TestSlotsAreGivenUp(t *testing.T) {
	t.Parallel()
	table := newSlotTable(t)
	for _, leaseID := range []string{"a", "b", "c"} {
		table.told(leaseID, time.Second, 6, true)
	}
	table.Release("a", at(time.Second), 1)
	of := func(name string) func(zone, key string) bool {
		return func(zone, key string) bool { return zone == "slots" && key == name }
	}
	if back := table.Void(at(2*time.Second), of("other")); len(back) != 0 {
		t.Errorf("%v go back for a reset of another key", holds(back))
	}
	if names := holds(table.Void(at(2*time.Second), of("k"))); !slices.Equal(names, []string{"a"}) {
		t.Errorf("%v go back, want a", names)
	}
	table.says(3*time.Second, 8)
	if fate, name := table.Release("c", at(3*time.Second), 1); fate != Back || name != "c" {
		t.Errorf("fate %d, name %q: a slot is kept that the store has forgotten", fate, name)
	}
	table.told("c", 3*time.Second, 6, true)
	table.Renewed("b", at(3*time.Second), at(3*time.Second))
	table.Release("b", at(3*time.Second), 1) // which the store knows again
	if names := holds(table.Close()); !slices.Equal(names, []string{"b"}) {
		t.Errorf("%v go back, want b", names)
	}
	if fate, name := table.Release("c", at(4*time.Second), 1); fate != Back || name != "c" {
		t.Errorf("fate %d, name %q, want c to go back", fate, name)
	}
	table.told("d", time.Second, 6, true)
	if fate, _ := table.Release("d", at(time.Second), 1); fate == Kept {
		t.Error("a slot is kept after the end")
	}
	table.kept(t, 0)
}

// holds returns the names of slots that go back, in order.
func holds(back []store.Adjustment) (names []string) {
	for _, a := range back {
		if a.Delta != -a.Cost {
			names = append(names, "wrong delta")
		}
		names = append(names, a.LeaseID)
	}
	slices.Sort(names)
	return names
}
