package admin

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/fleet"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestLastReport: when its store is closed, no config of an instance runs any more. It still reports what it has counted.
func TestLastReport(t *testing.T) {
	r := &reporter{last: &fleet.Report{
		Name: "x", Zones: []fleet.Zone{{Name: "z", ZoneCounts: adminapi.ZoneCounts{Totals: map[string]uint64{"allowed": 7}}}},
	}}
	diagnoses.mu.Lock()
	diagnoses.begun = time.Now() // so that doctor does not look at what other tests run
	diagnoses.mu.Unlock()
	read, err := fleet.Decode(r.write())
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Zones) != 1 || read.Zones[0].Totals["allowed"] != 7 || read.Now.IsZero() {
		t.Errorf("%+v", read)
	}
}

// TestDiagnoses: doctor looks now and then while somebody looks, again after an error, and what it has found long ago is not told.
func TestDiagnoses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		d, runs := new(diagnosed), 0
		diagnose := func(context.Context) (found adminapi.Diagnosis, err error) {
			runs++
			found.Level = strconv.Itoa(runs)
			if runs == 3 {
				err = context.Canceled
			}
			return found, err
		}
		for i, want := range []string{"", "1", "1", "2", "2", "2", "4"} {
			told := ""
			if found := d.lately(diagnose); found != nil {
				told = found.Level
			}
			if told != want {
				t.Errorf("report %d tells %q, want %q", i, told, want)
			}
			time.Sleep(store.CountInterval)
		}
		if time.Sleep(time.Minute); d.lately(diagnose) != nil {
			t.Error("what doctor has found a minute ago is told")
		}
		synctest.Wait()
	})
}
