// Package adminapi is the JSON that the admin API speaks: its server writes it, and the
// commands read it.
package adminapi

import (
	"encoding/json"
	"time"
)

// Top is what the admin API tells of the keys that come most often.
type Top struct {
	Zone string `json:"zone"`

	// By is what the keys are sorted by: requests or refused.
	By string `json:"by"`

	// Since is when counting began; absent if nothing came of late.
	Since *time.Time `json:"since,omitempty"`

	Keys []KeyCount `json:"keys"`
}

// KeyCount is a key in a list of them. The counts are sure; the errors are how much higher
// they may be.
type KeyCount struct {
	KeyText
	Requests      uint64 `json:"requests"`
	RequestsError uint64 `json:"requests_error"`
	Refused       uint64 `json:"refused"`
	RefusedError  uint64 `json:"refused_error"`
}

// Zone is what the admin API tells of a zone.
type Zone struct {
	Name         string `json:"name"`
	Limit        string `json:"limit"`
	Key          string `json:"key"` // empty: one limit for all
	Store        string `json:"store"`
	OnStoreError string `json:"on_store_error"`

	// Totals are the requests that met the zone on this Caddy, by what became of them, since
	// a config first named it.
	Totals map[string]uint64 `json:"totals"`

	// Keys is how many keys the memory store keeps.
	Keys *int64 `json:"keys,omitempty"`

	// InUse is how many slots requests of this Caddy hold, in a zone that counts these.
	InUse *int64 `json:"in_use,omitempty"`

	// Uses are the zone as each handler defines it.
	Uses []json.RawMessage `json:"uses"`
}

const Path = "/rate_limit/"
