package memorystore

import (
	"context"
	"encoding/binary"
	"net/netip"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// SetNetwork implements [store.Networker].
func (s *Store) SetNetwork(_ context.Context, rule *store.Rule, network netip.Prefix, override store.Override) error {
	kind, tail, err := rule.PrepareNetwork(network, override)
	if err != nil {
		return err
	}
	now, until := s.now(), int64(0)
	if length := override.For.Microseconds(); length > 0 {
		until = now + length
	}
	value := string(binary.BigEndian.AppendUint64([]byte{kind}, uint64(until))) + tail
	made, err := store.ParseNetwork(network, value, now, now)
	if err == nil {
		s.Networks(rule).Change(false, store.NetworkChange{Prefix: network, Network: made})
	}
	return err
}

// ClearNetwork implements [store.Networker].
func (s *Store) ClearNetwork(_ context.Context, rule *store.Rule, network netip.Prefix) error {
	s.Networks(rule).Change(false, store.NetworkChange{Prefix: network})
	return nil
}

// Networks implements [store.Networker].
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

var _ store.Networker = (*Store)(nil)
