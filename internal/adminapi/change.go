package adminapi

import (
	"cmp"
	"slices"
	"time"
)

// Changes are the last changes of what is limited, the newest last.
type Changes struct {
	Changes []Change `json:"changes"`

	// Incomplete says why changes of other instances may be missing. It is absent if none are.
	Incomplete string `json:"incomplete,omitempty"`
}

// Change is something that an operator has changed on an instance, or a config that it has begun to run.
type Change struct {
	ID     string    `json:"id"` // another for each change
	At     time.Time `json:"at"` // by the clock of the instance
	Caddy  string    `json:"caddy"`
	Action string    `json:"action"` // start, reload, override, exempt, ban, unban, clear or reset

	// By says who has done it: the name in the certificate of the client at the admin endpoint, or else its address.
	// It is absent for reloads, whose author the admin endpoint does not tell.
	By string `json:"by,omitempty"`

	Zone string   `json:"zone,omitempty"`
	Key  *KeyText `json:"of,omitempty"`

	// What says in words what has changed, and Note is what the operator has noted.
	What string `json:"what,omitempty"`
	Note string `json:"note,omitempty"`

	// Zones has what a reload has changed.
	Zones []ZoneDiff `json:"zones,omitempty"`
}

// LastChanges sorts changes, and returns the last n of them, each once, the newest last.
func LastChanges(n int, all []Change) []Change {
	slices.SortStableFunc(all, func(a, b Change) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	all = slices.CompactFunc(all, func(a, b Change) bool { return a.ID == b.ID })
	return all[max(0, len(all)-n):]
}

// What has happened to a zone.
const (
	ZoneNew     = "new"
	ZoneGone    = "gone"
	ZoneChanged = "changed"
)

// What happens to the counts of keys.
const (
	CountsKept   = "kept"   // under the new limit, too
	CountsPartly = "partly" // some plans have other states
	CountsAnew   = "zero"   // they begin again
)

// ZoneDiff is what differs between two configs in a zone.
type ZoneDiff struct {
	Zone string `json:"zone"`
	Kind string `json:"kind"` // new, gone or changed

	// Was and Is are the limit and the key in words, before and after.
	Was string `json:"was,omitempty"`
	Is  string `json:"is,omitempty"`

	Changes []OptionDiff `json:"changes,omitempty"`

	// Counts says what happens to the counts of keys: kept, partly or zero. It is absent for new zones, and if the
	// store differs.
	Counts string `json:"counts,omitempty"`

	// Stricter says that the zone can refuse requests that passed before.
	Stricter bool `json:"stricter,omitempty"`

	// Warnings are those that the new config gives, and the old one did not.
	Warnings []string `json:"warnings,omitempty"`
}

// OptionDiff is an option that differs. The limit of a zone is one option.
type OptionDiff struct {
	Option string `json:"option"`
	Was    string `json:"was,omitempty"`
	Is     string `json:"is,omitempty"`
	Text   string `json:"text"`
}
