package adminapi

import "time"

// Networks has the networks of a zone with the most requests. They are counted while somebody looks, and some minutes longer.
type Networks struct {
	Zone string `json:"zone"`

	// Since is when counting began, at most ten minutes ago. Requests is how many requests have come since then.
	Since    time.Time `json:"since"`
	Requests uint64    `json:"requests"`

	// Share is the part of all requests that a network must have to be listed, without those of networks within it that are
	// listed, too. All such networks are listed, but for those within a listed one all over which its requests are spread, and
	// those with less than ten requests.
	Share float64 `json:"share"`

	// Unlisted is how many requests a network may have that is not listed, if that is more than the share: in a fleet, where
	// reports are short. It is absent otherwise.
	Unlisted uint64 `json:"unlisted,omitempty"`

	Networks []NetworkCount `json:"networks"`
}

// NetworkCount has the counts of a network. The true counts are at least Requests and Refused, and at most higher by the error.
type NetworkCount struct {
	Network  string `json:"network"`
	Requests uint64 `json:"requests"`
	Refused  uint64 `json:"refused"` // with those that a dry run would have refused
	Error    uint64 `json:"error,omitempty"`

	// Keys is about how many different keys it has, with a standard error of KeysError.
	Keys      uint64  `json:"keys"`
	KeysError float64 `json:"keys_error"`

	// KeysMost is, in a fleet, how many they are if no key came to several instances. Keys are those of one instance.
	KeysMost uint64 `json:"keys_most,omitempty"`

	// Own is how many requests, at most, are in no network within it that is listed.
	Own uint64 `json:"own"`
}
