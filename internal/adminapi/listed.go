package adminapi

// List has the networks and keys of a zone that have an override, and then those that the zone has banned.
type List struct {
	Zone string `json:"zone"`

	Keys []Listed `json:"keys"`

	// More says that there are more.
	More bool `json:"more,omitempty"`
}

// Listed is a key of a list. By is [ByOverride] or [ByRefusals].
type Listed struct {
	KeyText
	By string `json:"by"`
	Override

	// DryRun says that the zone may refuse nothing because of it: of this key, or of some keys of a network.
	DryRun bool `json:"dry_run,omitempty"`

	// Unknown says that the store only has a hash of the key, which is shown instead.
	Unknown bool `json:"unknown,omitempty"`
}
