package redisstore

import (
	"encoding/binary"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// sanctions is what the script is to look at beside the state of a key.
type sanctions struct {
	setting string     // the key of its setting; empty if it has none
	banned  string     // the key of its ban's state; empty if it is never banned
	ban     *store.Ban // when it is
}

// What a check has beside the state, as its operation tells the script.
const (
	hasSetting = 4
	hasBan     = 8
)

// sanctions is what stands above the limit for a check that is to be decided.
func (s *Store) sanctions(c *store.Check) *sanctions {
	above := c.KeyRules
	b := new(sanctions)
	if above.Overrides {
		b.setting = s.settingKey(c.Rule, c.Key)
	}
	if above.Ban != nil {
		b.banned, b.ban = s.banKey(c.Rule, c.Key), above.Ban
	}
	return b
}

// settingKey and banKey are beside the key of the state, in the same slot.
func (s *Store) settingKey(rule *store.Rule, key string) string {
	return s.prefix + ":{" + tag(key) + "}:" + store.Escape(rule.Zone()) + ":setting" + sanctionsVersion
}

func (s *Store) banKey(rule *store.Rule, key string) string {
	return s.prefix + ":{" + tag(key) + "}:" + store.Escape(rule.Zone()) + ":ban" + sanctionsVersion
}

// op is the operation together with what the check has beside the state.
func (b *sanctions) op(op byte) byte {
	if b == nil {
		return op
	}
	if b.setting != "" {
		op += hasSetting
	}
	if b.banned != "" {
		op += hasBan
	}
	return op
}

// sanctions writes what a check has beside the state.
func (c *call) sanctions(to []byte, b *sanctions) []byte {
	if b.setting != "" {
		to = binary.BigEndian.AppendUint16(to, c.key(&b.setting))
	}
	if b.banned != "" {
		to = binary.BigEndian.AppendUint16(to, c.key(&b.banned))
		for _, p := range b.ban.Params() {
			to = binary.BigEndian.AppendUint64(to, uint64(p))
		}
	}
	c.reads = true
	return to
}
