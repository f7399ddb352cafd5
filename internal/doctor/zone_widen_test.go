package doctor

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/stats"
)

// TestWidens: the networks to which bans have widened are told with how many others they hit, and a dry run that would ban is a warning.
func TestWidens(t *testing.T) {
	some := func(n int) (all []stats.WidenedBan) {
		for i := range n {
			all = append(all, stats.WidenedBan{Network: netip.MustParsePrefix(fmt.Sprintf("10.0.%d.0/24", i)), Banned: 5, Passed: i})
		}
		return all
	}
	const three = "10.0.0.0/24 (5 keys banned, 0 others passed), 10.0.1.0/24 (5 keys banned, 1 others passed), 10.0.2.0/24 (5 keys banned, 2 others passed)"
	for name, c := range map[string]struct {
		widen *Widen
		want  string
	}{
		"without":               {nil, "[]"},
		"none":                  {&Widen{}, "[{ok bans have widened to 0 networks {}}]"},
		"one is spared":         {&Widen{Networks: []stats.WidenedBan{{Spared: true}}}, "[{ok bans have widened to 0 networks; 1 more are spared, because other keys of them pass {}}]"},
		"many":                  {&Widen{Networks: some(4)}, "[{ok bans have widened to 4 networks: " + three + ", ... {}}]"},
		"a dry run without any": {&Widen{DryRun: true}, "[{ok widen is a dry run, and would ban now 0 networks {}}]"},
		"a dry run of three":    {&Widen{DryRun: true, Networks: some(3)}, "[{warn widen is a dry run, and would ban now 3 networks: " + three + " {enforce it when the figures are right: remove dry_run, or raise enforce}}]"},
	} {
		if got := fmt.Sprint(widens(&Zone{Widen: c.widen})); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}
