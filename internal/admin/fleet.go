package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	"github.com/seed-161337e5/caddyratelimit/internal/doctor"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// announcement is what a Caddy tells the others that share a store with it.
type announcement struct {
	ID   string `json:"id"`   // of the process
	Name string `json:"name"` // for people

	// Zones has a digest of the definition of each zone, and Definitions the definition for people, which may be
	// absent.
	Zones       map[string]string `json:"zones"`
	Definitions map[string]string `json:"definitions,omitempty"`
}

const (
	// maxAnnounced bounds the zones of an announcement.
	maxAnnounced = 1000

	// maxPeers bounds the instances that are compared.
	maxPeers = 64
)

// announce tells the other instances how the newest config defines the zones in shared stores. A
// process can have several stores on one server, with different options, so each learns all.
func announce() {
	var to []store.Shared
	a := announcement{ID: store.Process(), Name: processName(), Zones: make(map[string]string), Definitions: make(map[string]string)}
	stores := runningStores()
	report(stores)
	for _, s := range stores {
		shared, ok := s.store.Store.Store.(store.Shared)
		if !ok {
			continue
		}
		to = append(to, shared)
		for _, z := range s.zones {
			if len(a.Zones) < maxAnnounced {
				a.Zones[z.Name], a.Definitions[z.Name] = z.digest(), z.definition()
			}
		}
	}
	text, err := json.Marshal(a)
	if err != nil {
		return
	}
	for _, shared := range to {
		shared.Announce(string(text))
	}
}

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
	return hex.EncodeToString(sum[:8])
}

// peers are the other instances that share a store.
type peers struct {
	fleet  doctor.Fleet
	others []announcement
}

// peers reads what the other instances announce.
func (s *runningStore) peers(ctx context.Context) (found peers) {
	shared, ok := s.store.Store.Store.(store.Shared)
	if !ok {
		return found
	}
	s.size(&found.fleet)
	texts, err := shared.Announcements(ctx, maxPeers)
	if err != nil {
		found.fleet.Err = err
		return found
	}
	found.fleet.Size, found.fleet.Telling = max(found.fleet.Size, len(texts)), 1
	for _, text := range texts {
		var a announcement
		if json.Unmarshal([]byte(text), &a) == nil && a.ID != "" && a.ID != store.Process() {
			found.others = append(found.others, a)
			found.fleet.Telling++
		}
	}
	return found
}

// differOn returns the instances that define a zone otherwise, and how.
func (p *peers) differOn(z *runningZone) (names []string) {
	mine := z.digest()
	for _, other := range p.others {
		theirs, known := other.Zones[z.Name]
		switch definition := other.Definitions[z.Name]; {
		case !known || theirs == mine:
		case definition == "":
			names = append(names, other.Name)
		case definition == z.definition():
			names = append(names, other.Name+" has other prefixes of the key")
		default:
			names = append(names, other.Name+" has "+definition)
		}
	}
	return names
}
