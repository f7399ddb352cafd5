package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// definition returns the limit and the key of the zone for people, without the network prefixes of the key.
func (z *runningZone) definition() string {
	if z.Key == "" {
		return z.Description
	}
	return z.Description + " by " + z.Template.Form()
}

// digest returns a text that differs for different definitions of the zone. Instances that share a
// store must agree on these.
func (z *runningZone) digest() string {
	prefixes := z.Template.Prefixes
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %d", z.Description, z.Key, prefixes.IPv4, prefixes.IPv6))
	return hex.EncodeToString(sum[:4])
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
	mine := z.digest()
	for _, other := range others {
		i := slices.IndexFunc(other.Zones, func(of fleet.Zone) bool { return of.Name == z.Name })
		if i < 0 || other.Zones[i].Digest == mine {
			continue
		}
		switch definition := other.Zones[i].Definition; definition {
		case "":
			names = append(names, other.Name)
		case z.definition():
			names = append(names, other.Name+" has other prefixes of the key")
		default:
			names = append(names, other.Name+" has "+definition)
		}
	}
	return names
}
