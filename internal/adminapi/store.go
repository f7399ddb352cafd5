package adminapi

import "time"

// Store is a store.
type Store struct {
	Name  string   `json:"name"`
	Zones []string `json:"zones"`

	// Answers says whether the store answered a test call just now, and Error is why it failed. They are absent if it was not asked.
	Answers *bool  `json:"answers,omitempty"`
	Error   string `json:"error,omitempty"`

	// Failing says that calls of recent requests have failed, and FailingSince since when.
	Failing      bool      `json:"failing"`
	FailingSince time.Time `json:"failing_since,omitzero"`

	// Busy says that requests of the last minute were not sent, because this instance had no time. The store
	// may be well.
	Busy bool `json:"busy,omitempty"`

	Breaker string `json:"breaker,omitempty"`

	// Silent are the Sentinels and nodes of a Cluster that do not answer this instance, or do not know the master.
	Silent []SilentServer `json:"silent,omitempty"`

	// Latency is how long requests of the last minute waited for the store. It is absent for a store in memory.
	Latency *Latency `json:"latency,omitempty"`

	// Errors counts the requests for which the store had no answer, by the kind of error.
	Errors        map[string]int64 `json:"errors,omitempty"`
	DenyCacheHits uint64           `json:"deny_cache_hits,omitempty"`

	// LostCorrections counts the refunds and late costs that were given up.
	LostCorrections uint64 `json:"lost_corrections,omitempty"`

	// Instances is the number of instances that use the store.
	Instances int `json:"instances,omitempty"`

	// ConfiguredInstances is the option instances, the smallest if handlers differ.
	ConfiguredInstances int `json:"configured_instances,omitempty"`

	// Keys is the number of keys of the zones in a memory store.
	Keys *int64 `json:"keys,omitempty"`
}

// SilentServer is a server that has not answered this instance for three seconds or more.
type SilentServer struct {
	Address string    `json:"address"`
	Since   time.Time `json:"since"`
	Error   string    `json:"error"`
}

// Latency has latencies in seconds. P50 and P99 are estimated from a histogram.
type Latency struct {
	Count uint64  `json:"count"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
}

// FleetAnswer is the answer of a route with the parameter fleet: that of all instances which share a store with this one.
type FleetAnswer struct {
	// Instances are this one, and then the others by name.
	Instances []Instance `json:"instances"`

	// Sum is what all instances have counted, in the form of the route without the parameter, and Counted how many these are.
	Sum     any `json:"sum,omitempty"`
	Counted int `json:"counted,omitempty"`

	// Notes say what is missing in the view.
	Notes []string `json:"notes,omitempty"`
}

// The states of instances.
const (
	StateHere    = "here"    // the one that answers
	StateReports = "reports" // it has reported within the last seconds
	StateSilent  = "silent"  // it no longer reports: it hangs, was killed, or does not reach the store
	StateLeft    = "left"    // it has ended, or has a config without this store
	StateMute    = "mute"    // it has not reported: it has just started, has an older version, or may not
)

// Instance is an instance of a fleet, and its answer.
type Instance struct {
	Name  string `json:"name"`
	ID    string `json:"id"` // another after each start
	State string `json:"state"`

	// Age is how many seconds ago it has reported. Its counts are of that time.
	Age float64 `json:"age"`

	// Differs are the zones that this one defines in another way than the instance that answers, or that only one of them has.
	Differs []string `json:"differs,omitempty"`

	// Requests counts those in all zones of shared stores, and Rate is how many have come in a second in the last minute.
	Requests uint64  `json:"requests"`
	Rate     float64 `json:"rate"`

	// Trouble says that its requests get no answer from a store.
	Trouble string `json:"trouble,omitempty"`
}

// Serves reports whether an instance takes requests, as far as is known.
func (i *Instance) Serves() bool { return i.State == StateHere || i.State == StateReports }
