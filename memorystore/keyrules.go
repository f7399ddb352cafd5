package memorystore

import (
	"context"
	"hash/maphash"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
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

// decideByRules decides a check by its key rules first, and then by the limit.
func (s *Store) decideByRules(t *ticket, now int64, d *algorithms.Decision) {
	c := t.check
	var left int64
	if o, expires := s.overrideLocked(c, now); o != nil {
		switch {
		case o.Kind == store.KindExempt:
			*d = algorithms.Decision{Allowed: true, Exempt: true, At: now}
			return
		case o.Kind == store.KindBanned && expires == 0:
			left = -1
		case o.Kind == store.KindBanned:
			left = expires - now
		case o.ReplacesLimit(c.Rule):
			t.params, t.override = o.Params(t.params), o.Encoded()
			t.countIn(s, o.States(c.Rule.States()))
		}
	}
	ban := c.KeyRules.Ban
	var shard *shard
	var id stateID
	if ban != nil && left == 0 {
		shard, id = s.locate(c.Rule, c.Key, banSuffix)
		left = ban.Left(shard.bans.value(id), now)
	}
	t.decide(s, now, c.Cost, d)
	if ban != nil && left == 0 && !d.Allowed && !c.Peek {
		if left = s.countRefusal(ban, shard, id, now); left > 0 {
			shard.nameBan(id, c, now, left)
		}
		d.BanBegins = left > 0
	}
	if left == 0 {
		return
	}
	if d.Allowed {
		t.decide(s, now, 0, d)
	}
	*d = d.Ban(left)
}

// countRefusal counts a refusal, and returns the length of the ban that begins with it, or 0.
// If the shard has no room for another key, the key is not banned.
func (s *Store) countRefusal(b *store.Ban, shard *shard, id stateID, now int64) (left int64) {
	if shard.bans.get(id) == nil && shard.fullOfBans(s.maxKeys()/shards, now) {
		return 0
	}
	state, left, life := b.Refused(shard.bans.value(id), now)
	shard.bans.put(id, state, now+life)
	return left
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
