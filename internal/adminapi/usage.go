package adminapi

import "time"

// UsagePage has what keys of a zone have used.
type UsagePage struct {
	Usage []Usage `json:"usage"`

	// Next is the cursor of the next page. It is absent on the last one. A page may be empty although others follow.
	Next string `json:"next,omitempty"`
}

// Usage is what a key has used in a window.
type Usage struct {
	Zone string    `json:"zone"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"` // the end of the window, which is not in it

	// Kind is absent for a key. It is hashed if Key is the SHA-256 of a long key, and rest for the sum of all keys for
	// which there was no room.
	Kind string `json:"kind,omitempty"`
	KeyText

	Requests int64 `json:"requests"` // that have passed
	Cost     int64 `json:"cost"`     // of these
	Refused  int64 `json:"refused"`
}

// The kinds of [Usage].
const (
	UsageHashed = "hashed"
	UsageRest   = "rest"
)

// UsageWindows says in which windows it is summed what keys use. Window is in seconds.
type UsageWindows struct {
	Window  float64 `json:"window"`
	Windows int     `json:"windows"`
}
