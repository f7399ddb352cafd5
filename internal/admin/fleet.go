package admin

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/doctor"
	"github.com/seed-161337e5/caddyratelimit/internal/fleet"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// processName names this process for people.
func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "a host without a name"
	}
	return fmt.Sprintf("%s (process %d)", host, os.Getpid())
}

// definition returns the limit and the key of the zone for people. Instances that share a store must agree on these, so it differs
// for different ones.
func (z *runningZone) definition() string {
	text := z.Description
	if z.Key != "" {
		text += " by " + z.Template.Form()
	}
	if p := z.Template.Prefixes; z.Template.HasAddress && (p.IPv4 != 32 || p.IPv6 != 64) {
		text += fmt.Sprintf(" (ipv4_prefix %d, ipv6_prefix %d)", p.IPv4, p.IPv6)
	}
	return text
}

// others reads what the other instances report that share a store, and says so in the facts about it.
func (s *runningStore) others(ctx context.Context, of *doctor.Store) (all []*fleet.Report) {
	shared, ok := s.store.Store.Store.(store.Shared)
	if !ok {
		return nil
	}
	reports, err := shared.Look(ctx, false)
	if err != nil {
		of.TellErr = err
		return nil
	}
	living := 1
	for _, r := range reports {
		if !r.Lives || r.Process == store.Process() {
			continue
		}
		living++
		if told, err := fleet.Decode(r.Text); err == nil {
			all = append(all, told)
		}
	}
	of.Instances, of.Telling = max(of.Instances, living), 1+len(all)
	return all
}

// definedOtherwise returns the instances that define a zone otherwise, and how.
func (z *runningZone) definedOtherwise(others []*fleet.Report) (names []string) {
	mine := z.definition()
	for _, other := range others {
		i := slices.IndexFunc(other.Zones, func(of fleet.Zone) bool { return of.Name == z.Name })
		if i >= 0 && other.Zones[i].Definition != mine {
			names = append(names, other.Name+" has "+other.Zones[i].Definition)
		}
	}
	return names
}
