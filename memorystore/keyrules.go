package memorystore

import (
	"context"
	"hash/maphash"
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

// The override and the ban of a key have IDs of their own, in the shard of its states.
const (
	overrideSuffix = ":override"
	banSuffix      = ":ban"
)

// locate returns the shard and the ID of a key's override or ban.
func (s *Store) locate(rule *store.Rule, key, suffix string) (*shard, stateID) {
	hash := maphash.String(s.seeds[0], key)
	zone := maphash.String(s.seeds[1], store.Escape(rule.Zone())+suffix) ^ rule.Salt()
	return &s.shards[hash%shards], stateID{(hash ^ zone) | 1, maphash.String(s.seeds[1], key) + zone}
}

// overrideLocked returns the override that holds for a check, and when it expires. It is nil
// if there is none.
func (s *Store) overrideLocked(c *store.Check, now int64) (*store.PreparedOverride, int64) {
	if c.KeyRules == nil || !c.KeyRules.Overrides {
		return nil, 0
	}
	shard, id := s.locate(c.Rule, c.Key, overrideSuffix)
	kept, ok := shard.overrides[id]
	if !ok || kept.expired(now) {
		return nil, 0
	}
	return kept.prepared, kept.expires
}

// Refusals implements [store.Lister].
func (s *Store) Refusals(_ context.Context, rule *store.Rule, ban *store.Ban, key string) (store.Refusals, error) {
	shard, id := s.locate(rule, key, banSuffix)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	return ban.Counted(shard.bans.value(id), s.now()), nil
}

// Set implements [store.Overrider]. Overrides do not count towards MaxKeys.
func (s *Store) Set(_ context.Context, rule *store.Rule, key string, to store.Override) error {
	prepared, err := rule.PrepareOverride(to)
	if err != nil {
		return err
	}
	shard, id := s.locate(rule, key, overrideSuffix)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	kept := override{name: nameOf(rule, key), prepared: prepared}
	if prepared.For > 0 {
		kept.expires = s.now() + prepared.For.Microseconds()
	}
	if shard.overrides == nil {
		shard.overrides = make(map[stateID]override)
	}
	shard.overrides[id] = kept
	return nil
}

// Get implements [store.Overrider].
func (s *Store) Get(_ context.Context, rule *store.Rule, key string) (store.Override, error) {
	shard, id := s.locate(rule, key, overrideSuffix)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	kept, ok := shard.overrides[id]
	now := s.now()
	if !ok || kept.expired(now) {
		return store.Override{}, nil
	}
	return kept.remaining(now), nil
}

// Clear implements [store.Overrider].
func (s *Store) Clear(_ context.Context, rule *store.Rule, key string) error {
	shard, id := s.locate(rule, key, overrideSuffix)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	delete(shard.overrides, id)
	return nil
}

// Unban implements [store.Overrider].
func (s *Store) Unban(_ context.Context, rule *store.Rule, key string) error {
	shard, id := s.locate(rule, key, overrideSuffix)
	_, ban := s.locate(rule, key, banSuffix)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if kept, ok := shard.overrides[id]; ok && kept.prepared.Kind == store.KindBanned {
		delete(shard.overrides, id)
	}
	shard.bans.delete(ban)
	delete(shard.banNames, ban)
	return nil
}
