package memorystore

import (
	"context"
	"encoding/binary"
	"net/netip"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// networksOf identifies the networks and groups of a zone.
type networksOf struct {
	zone string
	salt uint64
}

// SetNetwork implements [store.Networker].
func (s *Store) SetNetwork(_ context.Context, rule *store.Rule, network netip.Prefix, override store.Override) error {
	kind, tail, err := rule.PrepareNetwork(network, override)
	if err != nil {
		return err
	}
	value, now := s.overruling(kind, override, tail)
	made, err := store.ParseNetwork(network, value, now, now)
	if err == nil {
		s.Networks(rule).Change(false, store.NetworkChange{Prefix: network, Network: made})
	}
	return err
}

// SetGroup implements [store.Grouper].
func (s *Store) SetGroup(_ context.Context, rule *store.Rule, group store.Group, override store.Override) error {
	kind, tail, err := rule.PrepareGroup(group, override)
	if err != nil {
		return err
	}
	group = store.Group{By: strings.Clone(group.By), Value: strings.Clone(group.Value)}
	value, now := s.overruling(kind, override, tail)
	made, err := store.ParseGroup(group, value, now, now)
	if err == nil {
		s.Networks(rule).Change(false, store.NetworkChange{Group: group, Network: made})
	}
	return err
}

// ClearGroup implements [store.Grouper].
func (s *Store) ClearGroup(_ context.Context, rule *store.Rule, group store.Group) error {
	s.Networks(rule).Change(false, store.NetworkChange{Group: group})
	return nil
}

// overruling returns the override of a network or a group as a store writes it, and the time.
func (s *Store) overruling(kind byte, override store.Override, tail string) (value string, now int64) {
	now = s.now()
	until := int64(0)
	if length := override.For.Microseconds(); length > 0 {
		until = now + length
	}
	return string(binary.BigEndian.AppendUint64([]byte{kind}, uint64(until))) + tail, now
}

// ClearNetwork implements [store.Networker].
func (s *Store) ClearNetwork(_ context.Context, rule *store.Rule, network netip.Prefix) error {
	s.Networks(rule).Change(false, store.NetworkChange{Prefix: network})
	return nil
}

// Networks implements [store.Networker].
func (s *Store) Networks(rule *store.Rule) *store.Networks {
	of := networksOf{rule.Zone(), rule.Salt()}
	if known, ok := s.networks.Load(of); ok {
		return known.(*store.Networks)
	}
	known, _ := s.networks.LoadOrStore(of, store.NewNetworks(s.now))
	return known.(*store.Networks)
}

// sweepNetworks removes the networks and groups that have ended.
func (s *Store) sweepNetworks() {
	for _, networks := range s.networks.Range {
		networks.(*store.Networks).Sweep()
	}
}

var _ store.Grouper = (*Store)(nil)
