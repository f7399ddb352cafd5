package adminapi

import "time"

// BannedNetworks has the networks of a zone of which several keys are banned, and says which keys a ban of all of each would
// hit.
type BannedNetworks struct {
	Zone     string          `json:"zone"`
	Networks []BannedNetwork `json:"networks"`

	// Instances is how many share the store of the zone.
	Instances int `json:"instances"`

	// Incomplete says that the zone has more bans, or networks, than are looked at.
	Incomplete bool `json:"incomplete,omitempty"`
}

// BannedNetwork is a network of which several keys are banned.
type BannedNetwork struct {
	Network string `json:"network"`
	Banned  int    `json:"banned"` // how many of its keys are, in the whole fleet

	// Innocent is how many other keys of it have passed since then, and were not refused, at this instance. AtLeast says that
	// there may be more. Since is when counting began, at most ten minutes ago: with the first question about the network.
	Innocent int       `json:"innocent"`
	AtLeast  bool      `json:"at_least,omitempty"`
	Since    time.Time `json:"since"`

	// For is the time in seconds that is proposed for a ban of the network: that of the longest one of its keys. It is absent
	// for one without an end.
	For float64 `json:"for,omitempty"`

	// Against says what speaks against a ban of the network. It is absent if nothing does.
	Against string `json:"against,omitempty"`
}
