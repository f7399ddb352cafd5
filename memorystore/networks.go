package memorystore

import (
	"net/netip"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// writeNetwork writes the override of a network. Nil removes it.
func (s *Store) writeNetwork(rule *store.Rule, network netip.Prefix, to *store.PreparedOverride) error {
	var made *store.Network
	if to != nil {
		made = store.NewNetwork(network, to, s.end(to))
	}
	s.Networks(rule).Change(false, map[netip.Prefix]*store.Network{network: made})
	return nil
}

// Networks implements [store.Overrider].
func (s *Store) Networks(rule *store.Rule) *store.Networks {
	of := keyName{zone: rule.Zone(), salt: rule.Salt()}
	if known, ok := s.networks.Load(of); ok {
		return known.(*store.Networks)
	}
	known, _ := s.networks.LoadOrStore(of, store.NewNetworks(s.now))
	return known.(*store.Networks)
}

// sweepNetworks removes the networks that have ended.
func (s *Store) sweepNetworks() {
	for _, networks := range s.networks.Range {
		networks.(*store.Networks).Sweep()
	}
}
