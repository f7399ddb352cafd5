package adminapi

import "time"

// Networks has the networks of a zone with the most requests. They are counted while somebody looks, and some minutes longer.
type Networks struct {
	HeavyList
	Networks []NetworkCount `json:"networks"`
}

// Groups has the values of a zone's option group with the most requests. They are counted like networks.
type Groups struct {
	HeavyList

	// By is the option group of the zone.
	By string `json:"by"`

	Groups []GroupCount `json:"groups"`
}

// HeavyList says how a list of sets of keys with many requests was counted.
type HeavyList struct {
	Zone string `json:"zone"`

	// Since is when counting began, at most ten minutes ago. Requests is how many requests have come since then.
	Since    time.Time `json:"since"`
	Requests uint64    `json:"requests"`

	// Share is the part of all requests that a set must have to be listed; a network without those of networks within it
	// that are listed, too. All such sets are listed, but for networks within a listed one all over which its requests are
	// spread, and networks with less than ten requests.
	Share float64 `json:"share"`

	// Unlisted is how many requests a set may have that is not listed, if that is more than the share: in a fleet, where
	// reports are short. It is absent otherwise.
	Unlisted uint64 `json:"unlisted,omitempty"`
}

// HeavyCount has the counts of a set of keys. The true counts are at least Requests and Refused, and at most higher by the error.
type HeavyCount struct {
	Requests uint64 `json:"requests"`
	Refused  uint64 `json:"refused"` // with those that a dry run would have refused
	Error    uint64 `json:"error,omitempty"`

	// Keys is about how many different keys it has, with a standard error of KeysError.
	Keys      uint64  `json:"keys"`
	KeysError float64 `json:"keys_error"`

	// KeysMost is, in a fleet, how many they are if no key came to several instances. Keys are those of one instance.
	KeysMost uint64 `json:"keys_most,omitempty"`

	// Before is what Requests was ten minutes before, and BeforeError by how much it may be higher. They are absent if
	// that was not counted.
	Before      *uint64 `json:"before,omitempty"`
	BeforeError uint64  `json:"before_error,omitempty"`
}

// NetworkCount has the counts of a network.
type NetworkCount struct {
	Network string `json:"network"`
	HeavyCount

	// Own is how many requests, at most, are in no network within it that is listed.
	Own uint64 `json:"own"`
}

// GroupCount has the counts of a group.
type GroupCount struct {
	// Group is the value, which may be empty, with \ufffd for each byte that is not UTF-8.
	Group string `json:"group"`

	// GroupBase64 is the exact value. It is absent if Group is exact.
	GroupBase64 string `json:"group_base64,omitempty"`

	// Truncated is the length of the whole value in bytes. It is absent unless this is just the beginning of the value.
	Truncated int `json:"group_truncated,omitempty"`

	HeavyCount
}

// Text returns the value as a text like a key.
func (c *GroupCount) Text() KeyText {
	return KeyText{Key: c.Group, KeyBase64: c.GroupBase64, Truncated: c.Truncated}
}
