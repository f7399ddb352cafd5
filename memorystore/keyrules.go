package memorystore

import (
	"context"
	"hash/maphash"
	"net/netip"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// override is the override of a key.
type override struct {
	name     keyName
	prepared *store.PreparedOverride
	expires  int64 // 0: never
}

func (o override) expired(now int64) bool { return o.expires != 0 && o.expires <= now }

// remaining returns the override with the time that is left of it.
func (o override) remaining(now int64) store.Override {
	remaining := o.prepared.Override
	if o.expires != 0 {
		remaining.For = time.Duration(o.expires-now) * time.Microsecond
	}
	return remaining
}

// locate returns the shard of a key, and the ID of its override and of its ban.
func (s *Store) locate(rule *store.Rule, key string) (*shard, stateID) {
	hash, zone := maphash.String(s.seeds[0], key), rule.ZoneHash()^rule.Salt()
	return &s.shards[hash%shards], stateID{(hash ^ zone) | 1, maphash.String(s.seeds[1], key) + zone}
}

// Refusals implements [store.Overrider].
func (s *Store) Refusals(_ context.Context, rule *store.Rule, ban *store.Ban, key string) (store.Refusals, error) {
	shard, id := s.locate(rule, key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	return ban.Counted(shard.bans.value(id), s.now()), nil
}

// SetRule implements [store.Overrider]. Overrides do not count towards MaxKeys.
func (s *Store) SetRule(_ context.Context, rule *store.Rule, of store.Selector, to store.Override) error {
	return rule.WriteOverride(of, to,
		func(to *store.PreparedOverride) error { return s.writeOverride(rule, of.Key, to) },
		func(to *store.PreparedOverride) error { return s.writeNetwork(rule, of.Network, to) })
}

// writeOverride writes the override of a key. Nil removes it.
func (s *Store) writeOverride(rule *store.Rule, key string, to *store.PreparedOverride) error {
	shard, id := s.locate(rule, key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if to == nil {
		delete(shard.overrides, id)
		return nil
	}
	if shard.overrides == nil {
		shard.overrides = make(map[stateID]override)
	}
	shard.overrides[id] = override{name: nameOf(rule, key), prepared: to, expires: s.end(to)}
	return nil
}

// end returns when an override ends that begins now; 0: never.
func (s *Store) end(of *store.PreparedOverride) int64 {
	if of.For == 0 {
		return 0
	}
	return s.now() + of.For.Microseconds()
}

// GetRule implements [store.Overrider].
func (s *Store) GetRule(_ context.Context, rule *store.Rule, of store.Selector) (store.Override, error) {
	if of.IsNetwork() {
		return s.Networks(rule).Override(of.Network), nil
	}
	shard, id := s.locate(rule, of.Key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	kept, ok := shard.overrides[id]
	now := s.now()
	if !ok || kept.expired(now) {
		return store.Override{}, nil
	}
	return kept.remaining(now), nil
}

// Unban implements [store.Overrider].
func (s *Store) Unban(ctx context.Context, rule *store.Rule, of store.Selector) error {
	return of.Unban(ctx, s, rule, func() error {
		shard, id := s.locate(rule, of.Key)
		shard.mu.Lock()
		defer shard.mu.Unlock()
		if kept, ok := shard.overrides[id]; ok && kept.prepared.Kind == store.KindBanned {
			delete(shard.overrides, id)
		}
		shard.bans.delete(id)
		delete(shard.banNames, id)
		return nil
	})
}

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
