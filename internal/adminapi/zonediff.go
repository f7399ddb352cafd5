package adminapi

// What has happened to a zone.
const (
	ZoneNew     = "new"
	ZoneGone    = "gone"
	ZoneChanged = "changed"
)

// ZoneDiff is what differs between two configs in a zone.
type ZoneDiff struct {
	Zone string `json:"zone"`
	Kind string `json:"kind"` // new, gone or changed

	// Was and Is are the limit and the key in words, before and after.
	Was string `json:"was,omitempty"`
	Is  string `json:"is,omitempty"`

	Changes []OptionDiff `json:"changes,omitempty"`

	// FromZero says that the counts of some keys start from zero, so that they have their whole limit.
	FromZero bool `json:"counts_from_zero,omitempty"`

	// Warnings are those that the new config gives, and the old one did not.
	Warnings []string `json:"warnings,omitempty"`
}

// OptionDiff is an option that differs. It is the path to it, such as plan plans pro max_events.
type OptionDiff struct {
	Option string `json:"option"`
	Was    string `json:"was,omitempty"`
	Is     string `json:"is,omitempty"`
	Text   string `json:"text"`
}
