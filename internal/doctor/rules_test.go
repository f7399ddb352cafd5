package doctor

import (
	"testing"
	"time"
)

// TestRules: overrides that change nothing are found, and those that hold for more than a week without an end: bans, and
// what nobody has explained.
func TestRules(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		rules []Rule
		want  string
	}{
		"of unknown age":        {[]Rule{{}, {Ban: true}}, ""},
		"an old ban":            {[]Rule{{Ban: true, Age: 8 * day, Note: "attack"}, {}}, "1 of 2 overrides hold without an end for more than a week, the oldest for 8 days, note: attack"},
		"old and explained":     {[]Rule{{Age: 80 * day, Note: "contract"}}, ""},
		"old and not explained": {[]Rule{{Age: 8 * day}, {Age: 9 * day}}, "2 of 2 overrides hold without an end for more than a week, the oldest for 9 days"},
		"the zone's limit":      {[]Rule{{Same: true}}, "1 of 1 overrides give their key the limit that it has anyway"},
	} {
		var got string
		for _, f := range Examine(&Facts{Zones: []Zone{{Rules: c.rules}}}).Findings {
			if f.Check == "overrides" {
				got += f.Found
			}
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
