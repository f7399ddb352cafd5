package redisstore

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// stateVersion is the version of the stored states, and keyVersion that of the key
	// scheme and of what is stored beside states.
	stateVersion = ".2"
	keyVersion   = ".1"

	// maxPlainKey is the longest key that stands in Redis as it is; longer ones are hashed.
	maxPlainKey = 64
)

// key names the state of a zone's key in Redis:
//
//	<key_prefix>:{<key>}:<zone>:<algorithm>.<version>
//
// The key's value is the hash tag, so that in a Cluster all zones of one client share a
// slot. Every part is escaped, so no value can pass for another: the empty key is *,
// a long one # and its SHA-256, and neither sign survives escaping.
func (s *Store) key(rule *store.Rule, key string) string {
	return s.prefix + ":{" + tag(key) + "}:" + rule.ID() + stateVersion
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
