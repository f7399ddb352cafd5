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

// peers are the other instances that share a store.
type peers struct {
	fleet  doctor.Fleet
	others []*fleet.Report
}

// peers reads what the other instances report.
func (s *runningStore) peers(ctx context.Context) (found peers) {
	shared, ok := s.store.Store.Store.(store.Shared)
	if !ok {
		return found
	}
	s.size(&found.fleet)
	reports, err := shared.Look(ctx, false)
	if err != nil {
		found.fleet.Err = err
		return found
	}
	living := 1
	for _, r := range reports {
		if !r.Lives || r.Process == store.Process() {
			continue
		}
		living++
		if told, err := fleet.Decode(r.Text); err == nil {
			found.others = append(found.others, told)
		}
	}
	found.fleet.Size, found.fleet.Telling = max(found.fleet.Size, living), 1+len(found.others)
	return found
}

// differOn returns the instances that define a zone otherwise, and how.
func (p *peers) differOn(z *runningZone) (names []string) {
	mine := z.digest()
	for _, other := range p.others {
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
