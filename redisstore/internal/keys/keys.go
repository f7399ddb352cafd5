// Package keys names all that a store keeps in Redis.
package keys

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// keyRulesVersion is the version of overrides and bans; states have their own.
	keyRulesVersion = ".1"

	// maxUnhashed is the longest key that Redis keeps as it is; longer ones are hashed.
	maxUnhashed = 64
)

// Prefix begins all names.
type Prefix string

// State names the state of a zone's key:
//
//	<key_prefix>:{<key>}:<zone>:<algorithm>.<version>:<family>
//
// The key's value is the hash tag, so that in a Cluster all zones of one client share a
// slot. Every part is escaped, so no value can pass for another: the empty key is *,
// a long one # and its SHA-256, and neither sign survives escaping. The family is last, because
// the script puts that of a key's own limit in its place.
func (p Prefix) State(states, key string) string {
	return string(p) + ":{" + Tag(key) + "}:" + states
}

// Override names what an operator has set for a key, in the same slot as the state.
func (p Prefix) Override(rule *store.Rule, key string) string {
	return p.State(store.Escape(rule.Zone())+":setting"+keyRulesVersion, key)
}

// Ban names the state of a ban, in the same slot.
func (p Prefix) Ban(rule *store.Rule, key string) string {
	return p.State(store.Escape(rule.Zone())+":ban"+keyRulesVersion, key)
}

// Instances names the set of the processes that share the store.
func (p Prefix) Instances() string { return string(p) + ":instances" }

// Report names what a process reports, and Looked the set with the time until which somebody looks at that. In a Cluster they
// are in the slot of the set of processes.
func (p Prefix) Report(name string) string {
	return string(p) + ":report:{" + p.Instances() + "}:" + store.Escape(name)
}

// Looked is explained with [Prefix.Report].
func (p Prefix) Looked() string { return string(p) + ":looked:{" + p.Instances() + "}" }

// Networks names the networks that have overrides, of all zones, with marks of their changes. In a Cluster
// the set is in the slot of the processes.
func (p Prefix) Networks() string { return string(p) + ":networks:{" + p.Instances() + "}" }

// Network begins the names of the overrides of networks, in the same slot. Then come the zone, a slash and the network, each
// escaped.
func (p Prefix) Network() string { return string(p) + ":network:{" + p.Instances() + "}:" }

// Probe names the key that a probe writes. The hash tag chooses its slot; without one it has any.
func (p Prefix) Probe(tag string) string {
	if tag == "" {
		return string(p) + ":probe"
	}
	return string(p) + ":{" + tag + "}:probe"
}

// Tag returns the hash tag of a zone's key, which alone decides its slot.
func Tag(key string) string {
	switch {
	case key == "":
		return "*"
	case len(key) > maxUnhashed:
		sum := sha256.Sum256([]byte(key))
		return "#" + hex.EncodeToString(sum[:])
	}
	return store.Escape(key)
}
