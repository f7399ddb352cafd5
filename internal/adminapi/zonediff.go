package adminapi

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

	// Stricter says that the zone can refuse requests that passed before, and Weaker that it can let requests pass that
	// it refused before.
	Stricter bool `json:"stricter,omitempty"`
	Weaker   bool `json:"weaker,omitempty"`

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
