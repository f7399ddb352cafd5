// Package adminapi has the JSON types of the admin API, which its server and the commands share.
package adminapi

import (
	"cmp"
	"encoding/json"
	"time"
)

// Path is the path of the admin API at Caddy's admin endpoint.
const Path = "/rate_limit/"

// Top has the most frequent keys of a zone, or networks.
type Top struct {
	Zone string `json:"zone"`

	// Since is the time at which counting began. It is absent if there were no requests recently.
	Since time.Time `json:"since,omitzero"`

	Keys []KeyCount `json:"keys"`
}

// KeyCount has the counts of a key, which may be a little too low.
type KeyCount struct {
	KeyText

	// Plan is the plan of the key's last request that had one.
	Plan string `json:"plan,omitempty"`

	// Refused counts those that were refused. With DryRun, they would have been: the zone only tries its limit out on the key.
	Requests uint64 `json:"requests"`
	Refused  uint64 `json:"refused"`
	DryRun   bool   `json:"dry_run,omitempty"`
}

// Count returns the count of requests, or of those that were refused.
func (k *KeyCount) Count(refused bool) uint64 {
	if refused {
		return k.Refused
	}
	return k.Requests
}

// ZoneCounts is what an instance counts of a zone.
type ZoneCounts struct {
	// Totals counts the requests in the zone by outcome, since a config first named the zone.
	Totals map[string]uint64 `json:"totals"`

	// Rate is how many requests come to the zone in a second, in the last minute.
	Rate float64 `json:"rate"`

	// InUse is the number of slots that requests hold. It is absent if the zone does not count slots.
	InUse *int64 `json:"in_use,omitempty"`

	// Costs counts the responses that should say what their requests have cost, by result. CostSum is the
	// sum of these costs. They are absent if no response of the zone should.
	Costs   map[string]uint64 `json:"costs,omitempty"`
	CostSum uint64            `json:"cost_sum,omitempty"`
}

// Zone is a zone.
type Zone struct {
	Name  string `json:"name"`
	Limit string `json:"limit"`

	// Rollout says that the limit is not enforced for all keys: "dry run" or "enforce 50 %". If
	// handlers have the zone with different ones, they are separated by commas.
	Rollout string `json:"rollout,omitempty"`

	Key string `json:"key"` // empty for one limit for all requests

	// KeyForm is Key as a Caddyfile has it, such as {client_ip} for {http.vars.client_ip}.
	KeyForm string `json:"key_form,omitempty"`

	// Plans are the names of the zone's plans.
	Plans []string `json:"plans,omitempty"`

	Store        string `json:"store"`
	OnStoreError string `json:"on_store_error"`

	ZoneCounts

	// Keys is the number of keys in the memory store.
	Keys *int64 `json:"keys,omitempty"`

	// Uses has the zone's definition in each handler.
	Uses []json.RawMessage `json:"uses"`
}

// Requests returns how many requests the zone has had.
func (z *ZoneCounts) Requests() (n uint64) {
	for _, of := range z.Totals {
		n += of
	}
	return n
}

// Add adds what another instance counts. A zone may have costs, or slots, at one of them only.
func (z *ZoneCounts) Add(other *ZoneCounts) {
	sum(z.Totals, other.Totals)
	if z.Costs == nil && other.Costs != nil {
		z.Costs = make(map[string]uint64)
	}
	sum(z.Costs, other.Costs)
	z.CostSum += other.CostSum
	z.Rate += other.Rate
	if other.InUse != nil {
		held := *cmp.Or(z.InUse, new(int64)) + *other.InUse
		z.InUse = &held
	}
}

func sum(of, other map[string]uint64) {
	for name, n := range other {
		of[name] += n
	}
}

// Adaptive is an adaptive limit on this instance.
type Adaptive struct {
	Name       string          `json:"name"`
	Definition json.RawMessage `json:"definition"` // the options

	// Limit is how many requests may run now. It goes up and down a little all the time while requests wait.
	Limit   int `json:"limit"`
	Running int `json:"running"`
	Waiting int `json:"waiting"`

	// Latency is the mean time of a slot in seconds.
	Latency float64 `json:"latency"`

	// Spread is the mean of the squares of these times, divided by the square of their mean: 1 if all slots are taken for
	// as long, and above 4 where quick and slow requests should have a limit each.
	Spread float64 `json:"spread"`

	// Trend says what the limit does: "nothing waits", "goes up", "goes down" or "rests".
	Trend string `json:"trend"`

	// Useful, Failed and Left count requests that have had a slot: those whose answer a client got, those that the
	// upstream failed, and those whose client had left. Metrics have them by class.
	Useful uint64 `json:"useful"`
	Failed uint64 `json:"failed"`
	Left   uint64 `json:"left"`

	// Refused counts requests that got no slot.
	Refused uint64 `json:"refused"`

	// Since is when the shortage began of which requests wait now. It may have had pauses of up to a minute. It is
	// absent while nothing waits.
	Since *time.Time `json:"since,omitempty"`
}
