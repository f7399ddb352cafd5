package adminapi

import "time"

// Networks has the networks of a zone with the most requests. They are counted while somebody looks, and some minutes longer.
type Networks struct {
	Zone string `json:"zone"`

	// Since is when counting began, at most ten minutes ago. Requests is how many requests have come since then.
	Since    time.Time `json:"since"`
	Requests uint64    `json:"requests"`

	// Networks have at least 1 % of all requests, without those of networks within them that are listed, too. All such networks
	// are listed, but for those within a listed one all over which its requests are spread, and those with less than ten requests.
	Networks []NetworkCount `json:"networks"`
}

// NetworkCount has the counts of a network, which may be a little too low.
type NetworkCount struct {
	Network  string `json:"network"`
	Requests uint64 `json:"requests"`
	Refused  uint64 `json:"refused"` // with those that a dry run would have refused
}
