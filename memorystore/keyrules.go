package memorystore

import (
	"context"
	"hash/maphash"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// setting is what is kept of a key's setting.
type setting struct {
	own     *store.PreparedOverride
	expires int64 // 0: never
}

func (s setting) expired(now int64) bool { return s.expires != 0 && s.expires <= now }

// told is the setting with what is left of its time.
func (s setting) told(now int64) store.Override {
	told := s.own.Override
	if s.expires != 0 {
		told.For = time.Duration(s.expires-now) * time.Microsecond
	}
	return told
}

// What is kept of a key beside its state has places of its own, in the same shard.
const (
	settingPlace = ":setting"
	banPlace     = ":ban"
)

// beside is the place of something that is kept of a key beside its state.
func (s *Store) beside(rule *store.Rule, key, what string) (*shard, stateID) {
	hash := maphash.String(s.seeds[0], key)
	zone := maphash.String(s.seeds[1], store.Escape(rule.Zone())+what) ^ rule.Salt()
	return &s.shards[hash%shards], stateID{hash ^ zone, maphash.String(s.seeds[1], key) + zone}
}

// setting is the setting of a check's key that holds; nil if there is none. The shard is
// locked.
func (s *Store) setting(c *store.Check, now int64) (*store.PreparedOverride, int64) {
	if c.KeyRules == nil || !c.KeyRules.Overrides {
		return nil, 0
	}
	shard, id := s.beside(c.Rule, c.Key, settingPlace)
	kept, ok := shard.settings[id]
	if !ok || kept.expired(now) {
		return nil, 0
	}
	return kept.own, kept.expires
}

// decide decides a ticket: what stands above the limit, and then the limit.
func (s *Store) decide(t *ticket, now int64) algorithms.Decision {
	c := t.check
	t.params = c.Rule.At(now).Params
	if c.KeyRules == nil {
		return t.decide(s, now, c.Cost)
	}
	var left int64
	if own, ends := s.setting(c, now); own != nil {
		switch {
		case own.Kind == store.KindExempt:
			return algorithms.Decision{Allowed: true, Exempt: true}
		case own.Kind == store.KindBanned && ends == 0:
			left = -1
		case own.Kind == store.KindBanned:
			left = ends - now
		case own.ReplacesLimit(c.Rule):
			t.params, t.own = own.Params(t.params), own.Encoded()
			t.place(s, own.States(c.Rule.States()))
		}
	}
	ban := c.KeyRules.Ban
	var in *shard
	var id stateID
	if ban != nil && left == 0 {
		in, id = s.beside(c.Rule, c.Key, banPlace)
		left = ban.Left(in.bans[id].state, now)
	}
	d := t.decide(s, now, c.Cost)
	if ban != nil && left == 0 && !d.Allowed && !c.Peek {
		left = s.refused(ban, in, id, now)
		d.BanBegins = left > 0
	}
	if left == 0 {
		return d
	}
	if d.Allowed {
		d = t.decide(s, now, 0)
	}
	return d.Ban(left)
}

// refused counts a refusal, and tells how long the ban is that begins with it. Without
// room for another key nobody new is banned.
func (s *Store) refused(b *store.Ban, in *shard, id stateID, now int64) (left int64) {
	kept, ok := in.bans[id]
	if !ok && in.fullOfBans(s.maxKeys()/shards, now) {
		return 0
	}
	if in.bans == nil {
		in.bans = make(map[stateID]number)
	}
	state, left, life := b.Refused(kept.state, now)
	in.bans[id] = number{state: state, expires: now + life}
	return left
}

// Set implements [store.Overrider]. Settings do not count among the keys that are bounded.
func (s *Store) Set(_ context.Context, rule *store.Rule, key string, to store.Override) error {
	own, err := rule.PrepareOverride(to)
	if err != nil {
		return err
	}
	shard, id := s.beside(rule, key, settingPlace)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	kept := setting{own: own}
	if own.For > 0 {
		kept.expires = s.now() + own.For.Microseconds()
	}
	if shard.settings == nil {
		shard.settings = make(map[stateID]setting)
	}
	shard.settings[id] = kept
	return nil
}

// Get implements [store.Overrider].
func (s *Store) Get(_ context.Context, rule *store.Rule, key string) (store.Override, error) {
	shard, id := s.beside(rule, key, settingPlace)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	kept, ok := shard.settings[id]
	now := s.now()
	if !ok || kept.expired(now) {
		return store.Override{}, nil
	}
	return kept.told(now), nil
}

// Clear implements [store.Overrider].
func (s *Store) Clear(_ context.Context, rule *store.Rule, key string) error {
	shard, id := s.beside(rule, key, settingPlace)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	delete(shard.settings, id)
	return nil
}

// Unban implements [store.Overrider].
func (s *Store) Unban(_ context.Context, rule *store.Rule, key string) error {
	shard, id := s.beside(rule, key, settingPlace)
	_, ban := s.beside(rule, key, banPlace)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if kept, ok := shard.settings[id]; ok && kept.own.Kind == store.KindBanned {
		delete(shard.settings, id)
	}
	delete(shard.bans, ban)
	return nil
}
