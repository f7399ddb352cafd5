package admin

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	keys "github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// maxBansRead is how many bans of a zone are read to find their networks.
	maxBansRead = 10_000

	// maxBannedNetworks is how many networks are shown: as many as can be watched.
	maxBannedNetworks = 64

	// leastWatched is how long a network must have been watched before a ban of it is proposed.
	leastWatched = time.Minute
)

// The sizes of networks that a ban of keys may widen to, the smallest ones first. Larger ones are never proposed.
var (
	wider4 = []int{24}
	wider6 = []int{64, 48}
)

// bannedKeys are the keys of a zone that are banned, each with the rest of its ban: 0 if it has no end.
type bannedKeys map[netip.Prefix]time.Duration

// showBannedNetworks shows the networks of a zone, or of all zones whose keys are addresses, of which several keys are banned,
// and which keys a ban of all of each would hit.
func showBannedNetworks(c *adminCall) error {
	if err := c.checkParameters("least"); err != nil {
		return err
	}
	least, err := c.intParameter("least", 3, 2, 1000)
	if err != nil {
		return err
	}
	if c.zone != nil {
		if !c.zone.hasAddresses() {
			return adminError(badRequest, "the keys of zone %q are no addresses: it has no networks", c.zone.Name)
		}
		answer, err := c.zone.bannedNetworks(c, int(least))
		if err != nil {
			return err
		}
		return c.writeJSON(answer)
	}
	answers := []adminapi.BannedNetworks{}
	for _, z := range runningZones() {
		if !z.hasAddresses() {
			continue
		}
		answer, err := z.bannedNetworks(c, int(least))
		if err != nil {
			return err
		}
		answers = append(answers, answer)
	}
	return c.writeJSON(answers)
}

func (z *runningZone) hasAddresses() bool { return z.Template.IsAddress() && len(z.Rules()) > 0 }

func (z *runningZone) bannedNetworks(c *adminCall, least int) (answer adminapi.BannedNetworks, err error) {
	banned, supported := make(bannedKeys), false
	answer.Zone, answer.Instances = z.Name, 1
	if shared, ok := z.store.Store.Store.(store.Fleet); ok {
		answer.Instances = shared.Instances()
	}
	err = withStore(z.store, c, func(ctx context.Context, s store.Store) (err error) {
		var lister store.Lister
		if lister, supported = s.(store.Lister); supported {
			answer.Incomplete, err = z.readBans(ctx, lister, banned)
		}
		return err
	})
	switch {
	case err != nil:
		return answer, adminError(http.StatusServiceUnavailable, "listing keys in %s: %w", pool.Describe(z.store.Backend), err)
	case !supported:
		return answer, adminError(http.StatusNotImplemented, "%s does not list keys", pool.Describe(z.store.Backend))
	}
	found := wider(banned, least, z.networks())
	answer.Incomplete = answer.Incomplete || len(found) > maxBannedNetworks
	answer.Networks = found[:min(len(found), maxBannedNetworks)]
	z.countInnocent(answer.Networks, banned)
	return answer, nil
}

// readBans reads the bans of the zone after refusals, and those of single keys by operators. It reports whether there are more
// than are read.
func (z *runningZone) readBans(ctx context.Context, s store.Lister, to bannedKeys) (more bool, err error) {
	type pages func(cursor string) ([]store.Listed, string, error)
	var lists []pages
	if z.KeyRules != nil && z.KeyRules.Ban != nil {
		lists = append(lists, func(cursor string) ([]store.Listed, string, error) {
			return s.Bans(ctx, z.Rules()[0], z.KeyRules.Ban, cursor, 1000)
		})
	}
	if z.Overrides() {
		lists = append(lists, func(cursor string) ([]store.Listed, string, error) {
			return s.Overrides(ctx, z.Rules()[0], cursor, 1000)
		})
	}
	for _, list := range lists {
		for cursor := ""; ; {
			listed, next, err := list(cursor)
			if err != nil {
				return false, err
			}
			for i := range listed {
				l := &listed[i]
				if key := keys.ParseAddress(l.Key); key.IsValid() && !l.Unknown && l.Override.Kind == store.KindBanned {
					to[key] = l.Override.For
				}
			}
			if cursor = next; cursor == "" {
				break
			}
			if len(to) >= maxBansRead {
				return true, nil
			}
		}
	}
	return false, nil
}

// wider returns the networks with at least so many banned keys, those with the most first. A network is left out if another
// one within it has all of them, and if it is known to be banned.
func wider(banned bannedKeys, least int, known *store.Networks) []adminapi.BannedNetwork {
	type group struct {
		keys    int
		longest time.Duration
		covered bool // a network within it has all of its keys
	}
	groups := make(map[netip.Prefix]*group)
	for key, left := range banned {
		sizes := wider4
		if key.Addr().Is6() {
			sizes = wider6
		}
		for _, bits := range sizes {
			if bits >= key.Bits() {
				continue
			}
			network, _ := key.Addr().Prefix(bits)
			g := groups[network]
			if g == nil {
				g = &group{longest: left}
				groups[network] = g
			}
			if g.keys++; left == 0 || g.longest != 0 && left > g.longest {
				g.longest = left
			}
		}
	}
	for network, g := range groups {
		for _, bits := range wider6 { // IPv4 has one size
			if around, err := network.Addr().Prefix(bits); err == nil && bits < network.Bits() && groups[around] != nil && groups[around].keys == g.keys {
				groups[around].covered = true
			}
		}
	}
	found := []adminapi.BannedNetwork{}
	for network, g := range groups {
		if of := known.Find(network); g.keys < least || g.covered || of != nil && of.Override.Kind == store.KindBanned {
			continue
		}
		length := g.longest
		if length > 0 {
			length = max(time.Minute, length.Round(time.Minute))
		}
		found = append(found, adminapi.BannedNetwork{Network: network.String(), Banned: g.keys, For: length.Seconds()})
	}
	slices.SortFunc(found, func(a, b adminapi.BannedNetwork) int {
		return cmp.Or(cmp.Compare(b.Banned, a.Banned), cmp.Compare(a.Network, b.Network))
	})
	return found
}

// countInnocent adds which other keys of networks pass, and says what speaks against bans.
func (z *runningZone) countInnocent(networks []adminapi.BannedNetwork, banned bannedKeys) {
	now := time.Now()
	for i := range networks {
		n := &networks[i]
		keys, since, all := z.Stats.Watch.Look(z.Template.Address).Innocent(netip.MustParsePrefix(n.Network), func(key netip.Prefix) bool {
			_, is := banned[key]
			return is
		}, now)
		n.Innocent, n.Since, n.AtLeast = keys, since, !all
		switch {
		case keys > 0:
			n.Against = "it would hit keys that pass"
		case !all:
			n.Against = "it has more keys than can be watched"
		case now.Sub(since) < leastWatched:
			n.Against = "it is watched only since now: ask again in a minute"
		case !z.TakesNetworks():
			n.Against = fmt.Sprintf("zone %q takes no networks: add overrides", z.Name)
		}
	}
}
