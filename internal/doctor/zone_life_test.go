package doctor

import (
	"strings"
	"testing"
	"time"
)

// TestRules: overrides that change nothing are found, and those that hold for more than a week without an end: bans, and
// what nobody has explained.
func TestRules(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		rules []Rule
		want  []string // the beginnings of what is found
	}{
		"none":                  {},
		"of unknown age":        {[]Rule{{}, {Ban: true}}, []string{"2 overrides"}},
		"young":                 {[]Rule{{Ban: true, Age: 6 * day}}, []string{"1 overrides"}},
		"an old ban":            {[]Rule{{Ban: true, Age: 8 * day, Note: "attack"}, {}}, []string{"1 of 2 overrides hold without an end for more than a week, the oldest for 8 days, note: attack"}},
		"an old ban that ends":  {[]Rule{{Ban: true, Age: 8 * day, Ends: true}}, []string{"1 overrides"}},
		"old and explained":     {[]Rule{{Age: 80 * day, Note: "contract"}}, []string{"1 overrides"}},
		"old and not explained": {[]Rule{{Age: 8 * day}, {Age: 9 * day}}, []string{"2 of 2 overrides hold without an end for more than a week, the oldest for 9 days"}},
		"the zone's limit":      {[]Rule{{Same: true}}, []string{"1 of 1 overrides give their key the limit that it has anyway"}},
	} {
		var got []string
		for _, r := range overrules(&Zone{Rules: c.rules}) {
			got = append(got, r.found)
		}
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
