package doctor

import (
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// TestCompare: each thing in which the instances of a fleet differ is found, by one check.
func TestCompare(t *testing.T) {
	well := func() *Members {
		return &Members{All: []adminapi.Instance{
			{Name: "a", State: adminapi.StateHere, Version: "v1"},
			{Name: "b", State: adminapi.StateReports, Version: "v1"},
			{Name: "c", State: adminapi.StateReports, Version: "v1"},
		}}
	}
	for name, c := range map[string]struct {
		change func(*Members)
		want   string
	}{
		"well":             {func(*Members) {}, ""},
		"a silent one":     {func(m *Members) { m.All[1].State = adminapi.StateSilent }, "warn instances"},
		"a mute one":       {func(m *Members) { m.All[1].State = adminapi.StateMute }, "unknown instances"},
		"an unchecked one": {func(m *Members) { m.Unchecked = []string{"b"} }, "unknown instances"},
		"one that left":    {func(m *Members) { m.All[1].State = adminapi.StateLeft }, ""},
		"another config":   {func(m *Members) { m.All[2].Differs = []string{"z"} }, "fail config"},
		"another version":  {func(m *Members) { m.All[2].Version = "v2" }, "warn version"},
		"an outage":        {func(m *Members) { m.Troubled = map[string]string{"b": "the breaker is open"} }, "warn outage"},
		"an outage of all": {func(m *Members) {
			m.Troubled = map[string]string{"a": "x", "b": "x", "c": "x"}
		}, ""},
		"a late one": {func(m *Members) { // its last report may be from before
			m.Troubled = map[string]string{"a": "x"}
			m.All[1].State = adminapi.StateSilent
		}, "warn outage"},
	} {
		m := well()
		c.change(m)
		var bad []string
		for _, f := range Compare(m) {
			bad = append(bad, f.Level+" "+f.Check)
		}
		if got := strings.Join(bad, ", "); got != c.want {
			t.Errorf("%s: found %q, want %q", name, got, c.want)
		}
	}
}
