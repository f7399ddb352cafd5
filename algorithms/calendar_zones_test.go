//go:build deep

package algorithms_test

import (
	"archive/zip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// TestCalendarEverywhere looks at the windows around each change of the clocks, from 1970 to 2037, of all time zones that
// come with Go: [TestCalendar] walks through a few of them.
func TestCalendarEverywhere(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	zones, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer zones.Close()
	looked, changes := 0, 0
	for _, file := range zones.File {
		name := file.Name
		if strings.HasSuffix(name, "/") {
			continue
		}
		location, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		looked++
		for at := time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC).In(location); at.Year() < 2038; changes++ {
			_, change := at.ZoneBounds()
			if change.IsZero() {
				break
			}
			for _, off := range []time.Duration{-25 * time.Hour, -time.Hour, -time.Microsecond, 0, time.Hour, 25 * time.Hour} {
				for _, c := range []algorithms.Calendar{algorithms.Day, algorithms.Week, algorithms.Month, algorithms.Year} {
					around(t, c, location, change.Add(off))
				}
			}
			at = change
		}
	}
	t.Logf("%d changes in %d time zones", changes, looked)
	if looked < 10 || changes < 100 {
		t.Errorf("%d changes in %d time zones are too few", changes, looked)
	}
}
