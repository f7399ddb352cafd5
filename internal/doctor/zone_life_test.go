package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

// TestRules: overrides that change nothing are found, and those that hold for more than a week without an end: bans, and
// what nobody has explained.
func TestRules(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		rules []Rule
		want  []string // the beginnings of what is found
	}{
		"of unknown age":        {[]Rule{{}, {Ban: true}}, []string{"2 overrides"}},
		"an old ban":            {[]Rule{{Ban: true, Age: 8 * day, Note: "attack"}, {}}, []string{"1 of 2 overrides hold without an end for more than a week, the oldest for 8 days, note: attack"}},
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

// TestLeftOver: a limit that has refused nobody in a week and an exemption that nobody uses are told, and no others.
func TestLeftOver(t *testing.T) {
	const day = 24 * time.Hour
	some := func(n uint64, more ...outcome.Outcome) (z Zone) {
		z.SinceLoaded, z.Totals[outcome.Allowed] = n, n
		for _, o := range more {
			z.Totals[o]++
		}
		return z
	}
	for name, c := range map[string]struct {
		zone  Zone
		age   time.Duration
		meets string
		spare string // of exemptions
	}{
		"refused nobody":          {some(1000), 8 * day, "1000 requests, none of them refused in 8 days", "exempt has matched none of 1000 requests"},
		"refused nobody in a day": {some(1000), day, "1000 requests, 0 of them refused", "exempt has matched none of 1000 requests"},
		"refused somebody":        {some(1000, outcome.Limited), 8 * day, "1001 requests, 1 of them refused", "exempt has matched none of 1001 requests"},
		"somebody was exempt":     {some(1000, outcome.Exempt), 8 * day, "1001 requests, none of them refused in 8 days", "1 of 1001 requests were exempt"},
		"few requests":            {some(9), 8 * day, "9 requests, 0 of them refused", ""},
	} {
		c.zone.For, c.zone.Exempts = c.age, true
		if got := found(meets(&c.zone)); got != c.meets {
			t.Errorf("%s: got %q, want %q", name, got, c.meets)
		}
		if got := found(exempts(&c.zone)); got != c.spare {
			t.Errorf("%s: got %q, want %q", name, got, c.spare)
		}
	}
}

// found joins what results say.
func found(results []result) string {
	var all []string
	for _, r := range results {
		all = append(all, r.found)
	}
	return strings.Join(all, "; ")
}
