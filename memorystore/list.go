package memorystore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// maxBanNames is how many keys a shard knows by name of those that are banned after refusals.
	// All shards together know 16,384.
	maxBanNames = 128

	// maxBanName is the longest such key, in bytes.
	maxBanName = 256
)

// keyName is a key of a zone as text. IDs are only hashes.
type keyName struct {
	zone  string
	salt  uint64
	key   string
	until int64 // the end of the ban
}

func (n keyName) expired(now int64) bool { return n.until <= now }

func nameOf(rule *store.Rule, key string) keyName {
	return keyName{zone: rule.Zone(), salt: rule.Salt(), key: strings.Clone(key)}
}

func (n *keyName) isOf(rule *store.Rule) bool { return n.zone == rule.Zone() && n.salt == rule.Salt() }

// nameBan notes the key of a ban that begins, if there is room.
func (s *shard) nameBan(id stateID, c *store.Check, now, left int64) {
	if len(c.Key) > maxBanName {
		return
	}
	if len(s.banNames) >= maxBanNames {
		for other, name := range s.banNames {
			if name.expired(now) {
				delete(s.banNames, other)
			}
		}
	}
	if _, known := s.banNames[id]; !known && len(s.banNames) >= maxBanNames {
		return
	}
	if s.banNames == nil {
		s.banNames = make(map[stateID]keyName)
	}
	name := nameOf(c.Rule, c.Key)
	name.until = now + left
	s.banNames[id] = name
}

// Overrides implements [store.Overrider].
func (s *Store) Overrides(_ context.Context, rule *store.Rule, cursor string, n int) ([]store.Listed, string, error) {
	return s.list(cursor, n, func(shard *shard, now int64) (keys []store.Listed) {
		for _, o := range shard.overrides {
			if o.name.isOf(rule) && !o.expired(now) {
				keys = append(keys, store.Listed{Key: o.name.key, Override: o.remaining(now)})
			}
		}
		return keys
	})
}

// Bans implements [store.Overrider]. It does not list keys of more than 256 bytes, and of many bans
// only the first 16,384.
func (s *Store) Bans(_ context.Context, rule *store.Rule, ban *store.Ban, cursor string, n int) ([]store.Listed, string, error) {
	return s.list(cursor, n, func(shard *shard, now int64) (keys []store.Listed) {
		for id, name := range shard.banNames {
			left := ban.Left(shard.bans.value(id), now)
			if name.isOf(rule) && left > 0 {
				length := time.Duration(left) * time.Microsecond
				keys = append(keys, store.Listed{Key: name.key, Override: store.Override{Kind: store.KindBanned, For: length}})
			}
		}
		return keys
	})
}

// list goes through the shards from a cursor, the number of a shard, until there are n keys.
func (s *Store) list(cursor string, n int, of func(*shard, int64) []store.Listed) (keys []store.Listed, next string, err error) {
	i := 0
	if cursor != "" {
		if i, err = strconv.Atoi(cursor); err != nil || i < 0 || i > shards {
			return nil, "", fmt.Errorf("%w: %q", store.ErrCursor, cursor)
		}
	}
	for ; i < shards && len(keys) < n; i++ {
		shard := &s.shards[i]
		shard.mu.Lock()
		keys = append(keys, of(shard, s.now())...)
		shard.mu.Unlock()
	}
	if i == shards {
		return keys, "", nil
	}
	return keys, strconv.Itoa(i), nil
}

// Interface guards
var _ store.Overrider = (*Store)(nil)
