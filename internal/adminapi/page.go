package adminapi

// This file has what the stream of the page sends. It is for the page of the same binary, so fields
// may change with it.

// PageStart is the first event of the stream. The other events refer to its zones and stores by index.
type PageStart struct {
	// Caddy names the process for people, and Process is another after each start. Address is what
	// --address of the command line takes; empty for the default.
	Caddy   string `json:"caddy"`
	Process string `json:"process"`
	Address string `json:"address,omitempty"`
	Since   int64  `json:"since"` // when the process began, in milliseconds of Unix time

	Outcomes []string    `json:"outcomes"` // the order of totals
	Bounds   []float64   `json:"bounds"`   // the upper bounds of the latencies, in seconds
	Zones    []PageZone  `json:"zones"`
	Stores   []PageStore `json:"stores"`
}

// PageZone is a zone that does not change while the config runs.
type PageZone struct {
	Zone
	Parts     []string `json:"parts"` // the placeholders of the key
	Overrides bool     `json:"overrides"`
	Bans      bool     `json:"bans"`               // the zone bans keys by itself
	Limited   int64    `json:"events,omitempty"`   // the events of its limit, if they are always the same
	Slots     bool     `json:"slots,omitempty"`    // it counts running requests
	Networks  bool     `json:"networks,omitempty"` // networks can have overrides

	// History is what happened before the page was opened. It is absent for a page about the whole fleet.
	History *PageHistory `json:"history,omitempty"`
}

// PageHistory has what a zone has counted in each of several steps of time, one after the other.
type PageHistory struct {
	End      int64    `json:"end"`  // of the last step, in milliseconds of Unix time
	Step     float64  `json:"step"` // in seconds
	Requests []uint32 `json:"requests"`
	Refused  []uint32 `json:"refused"` // or would have been by a dry run
}

// PageStore is a store that does not change while the config runs.
type PageStore struct {
	Name   string `json:"name"`
	Remote bool   `json:"remote"`
}

// PageSecond is what has happened in about a second.
type PageSecond struct {
	Time int64 `json:"time"` // in milliseconds of Unix time

	// Totals has the requests by outcome of each zone in which they have changed, by its index.
	Totals map[int][]uint64 `json:"totals,omitempty"`

	// Costs has the costs in the responses of each zone in which they have changed, by its index.
	Costs map[int]ZoneCosts `json:"costs,omitempty"`

	// Top has the keys that were refused most in some zones where these have changed.
	Top []PageTop `json:"top,omitempty"`

	// Refused is a sample of the refusals.
	Refused []Decision `json:"refused,omitempty"`

	// Decisions is a sample of the decisions that were asked for. Skipped is how many are not in it.
	Decisions []Decision `json:"decisions,omitempty"`
	Skipped   uint64     `json:"skipped,omitempty"`

	// Instances are those of the fleet, if the page shows it and they have reported since the event before.
	Instances []Instance `json:"instances,omitempty"`

	Adaptive []Adaptive `json:"adaptive,omitempty"`

	Stores []PageStoreState `json:"stores"`
	Keys   map[int]int64    `json:"keys,omitempty"`   // in memory stores, by zone; not in each event
	InUse  map[int]int64    `json:"in_use,omitempty"` // slots, by zone
}

// PageTop has the keys of a zone that were refused most.
type PageTop struct {
	Index int `json:"index"` // of the zone
	Top
}

// PageStoreState is the state of a store. The counts never decrease while the process runs.
type PageStoreState struct {
	Failing   bool             `json:"failing,omitempty"`
	Since     int64            `json:"since,omitempty"` // when it began to fail, in milliseconds of Unix time
	Breaker   string           `json:"breaker,omitempty"`
	Instances int              `json:"instances,omitempty"`
	Share     int              `json:"share,omitempty"`   // while it does not answer, each instance has one part of so many
	Latency   []uint64         `json:"latency,omitempty"` // how many took at most each bound, and how many more
	Sum       float64          `json:"sum,omitempty"`     // of all latencies, in seconds
	Calls     uint64           `json:"calls,omitempty"`   // to the server
	Errors    map[string]int64 `json:"errors,omitempty"`
	DenyHits  uint64           `json:"deny_hits,omitempty"`
	Lost      uint64           `json:"lost,omitempty"`
}
