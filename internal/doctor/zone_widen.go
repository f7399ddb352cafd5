package doctor

import (
	"fmt"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
)

// Widen is what is known of bans that widen to networks.
type Widen struct {
	DryRun bool

	// Networks are the decisions that hold in the fleet, without the bans that an operator has ended.
	Networks []stats.WidenedBan
}

// maxNamed is how many networks a finding names.
const maxNamed = 3

// widens says which networks are banned because their keys were, or would be without a dry run, and how many others that hits.
func widens(z *Zone) []result {
	w := z.Widen
	if w == nil {
		return nil
	}
	var banned []string
	spared := 0
	for _, n := range w.Networks {
		if n.Spared {
			spared++
			continue
		}
		banned = append(banned, fmt.Sprintf("%s (%d keys banned, %d others passed)", n.Network, n.Banned, n.Passed))
	}
	text := fmt.Sprint(len(banned), " networks")
	if len(banned) > 0 {
		text += ": " + strings.Join(banned[:min(len(banned), maxNamed)], ", ")
	}
	if len(banned) > maxNamed {
		text += ", ..."
	}
	if spared > 0 {
		text += fmt.Sprintf("; %d more are spared, because other keys of them pass", spared)
	}
	switch {
	case w.DryRun && len(banned) > 0:
		return []result{{adminapi.LevelWarn, "widen is a dry run, and would ban now " + text, enforceZone.With()}}
	case w.DryRun:
		return ok("widen is a dry run, and would ban now %s", text)
	}
	return ok("bans have widened to %s", text)
}
