package adminapi

// Store is what the admin API tells of a store.
type Store struct {
	Name    string         `json:"name"`
	Backend string         `json:"backend"`
	Details map[string]any `json:"details,omitempty"`
	Zones   []string       `json:"zones"`

	// Answers says whether the store has answered just now, Took how many seconds that took,
	// and Error why it has not. It is not asked if it has no zones.
	Answers *bool   `json:"answers,omitempty"`
	Took    float64 `json:"took,omitempty"`
	Error   string  `json:"error,omitempty"`

	// Failing says that requests have found the store not answering, lately.
	Failing bool   `json:"failing"`
	Breaker string `json:"breaker,omitempty"`

	// Latency is of a store that is a server, since this Caddy began to use it.
	Latency *Latency `json:"latency,omitempty"`

	// Errors are the decisions that the store has not given, by kind.
	Errors        map[string]int64 `json:"errors,omitempty"`
	DenyCacheHits uint64           `json:"deny_cache_hits,omitempty"`

	// LostCorrections are refunds and late costs that were given up.
	LostCorrections uint64 `json:"lost_corrections,omitempty"`

	// Instances is how many Caddys use the store.
	Instances int `json:"instances,omitempty"`

	// Keys is how many keys the memory store keeps for the zones.
	Keys *int64 `json:"keys,omitempty"`

	// InUse are the slots that requests of this Caddy hold, by zone.
	InUse map[string]int64 `json:"in_use,omitempty"`
}

// Latency is in seconds. P50 and P99 are the bounds of the buckets in which they lie.
type Latency struct {
	Count uint64  `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
}
