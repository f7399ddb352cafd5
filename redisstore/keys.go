package redisstore

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/topology"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// keyRulesVersion is the version of overrides and bans; states have their own.
	keyRulesVersion = ".1"

	// maxPlainKey is the longest key that Redis keeps as it is; longer ones are hashed.
	maxPlainKey = 64
)

// keys names all that a store keeps in Redis.
type keys struct {
	prefix  string
	cluster bool
}

// state names the state of a zone's key:
//
//	<key_prefix>:{<key>}:<zone>:<algorithm>.<version>:<family>
//
// The key's value is the hash tag, so that in a Cluster all zones of one client share a
// slot. Every part is escaped, so no value can pass for another: the empty key is *,
// a long one # and its SHA-256, and neither sign survives escaping. The family is last, because
// the script puts that of a key's own limit in its place.
func (k *keys) state(states, key string) string {
	return k.prefix + ":{" + tag(key) + "}:" + states
}

// override and ban name what is kept beside the state, in the same slot.
func (k *keys) override(rule *store.Rule, key string) string {
	return k.prefix + ":{" + tag(key) + "}:" + store.Escape(rule.Zone()) + ":setting" + keyRulesVersion
}

func (k *keys) ban(rule *store.Rule, key string) string {
	return k.prefix + ":{" + tag(key) + "}:" + store.Escape(rule.Zone()) + ":ban" + keyRulesVersion
}

// instances names the set of the processes that share the store.
func (k *keys) instances() string { return k.prefix + ":instances" }

// announcement names what a process announces. In a Cluster it is in the slot of the set.
func (k *keys) announcement(name string) string {
	return k.prefix + ":announced:{" + k.instances() + "}:" + store.Escape(name)
}

// probe names the key that a probe writes. In a Cluster it has a slot.
func (k *keys) probe(slot uint16) string {
	if !k.cluster {
		return k.prefix + ":probe"
	}
	for i := 0; ; i++ {
		if tag := strconv.Itoa(i); topology.SlotOf(tag) == slot {
			return k.prefix + ":{" + tag + "}:probe"
		}
	}
}

func tag(key string) string {
	switch {
	case key == "":
		return "*"
	case len(key) > maxPlainKey:
		sum := sha256.Sum256([]byte(key))
		return "#" + hex.EncodeToString(sum[:])
	}
	return store.Escape(key)
}
