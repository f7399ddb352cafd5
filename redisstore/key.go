package redisstore

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// sanctionsVersion is the version of settings and bans; states have their own.
	sanctionsVersion = ".1"

	// maxPlainKey is the longest key that stands in Redis as it is; longer ones are hashed.
	maxPlainKey = 64
)

// key names the state of a zone's key in Redis:
//
//	<key_prefix>:{<key>}:<zone>:<algorithm>.<version>:<family>
//
// The key's value is the hash tag, so that in a Cluster all zones of one client share a
// slot. Every part is escaped, so no value can pass for another: the empty key is *,
// a long one # and its SHA-256, and neither sign survives escaping. The family is last, for
// the script puts that of a key's own limit in its place.
func (s *Store) key(states, key string) string {
	return s.prefix + ":{" + tag(key) + "}:" + states
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
