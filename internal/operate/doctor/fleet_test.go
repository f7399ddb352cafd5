package doctor

import (
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// TestInstances: each thing in which the instances of a fleet differ is found, by one check, of the instance that it is about.
func TestInstances(t *testing.T) {
	for name, c := range map[string]struct {
		change func(all []adminapi.Instance)
		want   string
	}{
		"well":           {func([]adminapi.Instance) {}, ""},
		"a silent one":   {func(all []adminapi.Instance) { all[1].State = adminapi.StateSilent }, "warn instances b"},
		"a mute one":     {func(all []adminapi.Instance) { all[1].State = adminapi.StateMute }, "unknown instances b"},
		"one that left":  {func(all []adminapi.Instance) { all[1].State = adminapi.StateLeft }, ""},
		"another config": {func(all []adminapi.Instance) { all[2].Differs = []string{"z"} }, "fail config c"},
		"an outage":      {func(all []adminapi.Instance) { all[1].Trouble = "no answer" }, "warn outage b"},
		"an outage of all": {func(all []adminapi.Instance) {
			for i := range all {
				all[i].Trouble = "no answer"
			}
		}, ""},
		"a late one": {func(all []adminapi.Instance) { // its last report may be from before
			all[0].Trouble = "no answer"
			all[1].State = adminapi.StateSilent
		}, "warn outage a"},
	} {
		all := []adminapi.Instance{
			{Name: "a", State: adminapi.StateHere},
			{Name: "b", State: adminapi.StateReports},
			{Name: "c", State: adminapi.StateReports},
		}
		c.change(all)
		var bad []string
		for _, f := range Examine(&Facts{Instances: all, Zones: make([]Zone, 1)}).Findings {
			if f.Of == "instance" {
				bad = append(bad, f.Level+" "+f.Check+" "+strings.Join(f.Names, " "))
			}
		}
		if got := strings.Join(bad, ", "); got != c.want {
			t.Errorf("%s: found %q, want %q", name, got, c.want)
		}
	}
}
