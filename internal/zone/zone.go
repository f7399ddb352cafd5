// Package zone is a zone at run time: which requests it counts, under which key, and what its
// policies make of a request: a limit and a cost.
package zone

import (
	"slices"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/throttle"
	"github.com/seed-161337e5/caddyratelimit/limit"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Zone is a zone at run time: what of its config requests meet, made ready.
type Zone struct {
	Name         string
	Index        int // among the zones of the handler
	Matchers     caddyhttp.MatcherSets
	Template     *key.Template
	Stats        *stats.Counters
	StoreID      string
	OnStoreError string // the zone's, or the handler's
	Exceeded     error  // what a refusal ends the request with
	JSON         []byte // the zone as the config has it, in JSON
	Description  string // what all uses of its name agree on, in words

	limit.Limit
	Plan         *limit.Plans // nil: one limit for all
	OwnPolicies  Policies
	Plans        map[string]*Plan
	PlanByName   map[string]*Plan // by their names as planOf has them
	PlanTemplate *key.Template
	DefaultPlan  *Plan        // what holds without one; nil refuses
	Policy       *QuotaPolicy // nil if it depends on the request

	Cost      *limit.Amount
	FixedCost int64

	HasPolicies bool // the zone has policies that look at each request
	Exempt      caddyhttp.MatcherSets
	Block       caddyhttp.MatcherSets
	Reserve     caddyhttp.MatcherSets // the requests that slots are kept for; none: no slots are

	ChargesLate      bool // what a request is charged depends on its response
	ChargeOnResponse *caddyhttp.ResponseMatcher
	CostHeader       string
	CostBrokenOff    *int64

	Overrides bool
	KeyRules  *store.KeyRules // what stands above the limit for single keys; nil: nothing

	DryRun      bool
	Enforce     *float64
	EnforceSeed uint64 // seed of the hash that chooses keys

	// What requests are refused with, without asking the store.
	Key                  string
	MissingKey           string
	MissingKeyStatus     int
	RepeatedValuesStatus int
	InvalidLimit         int
	BlockStatus          int

	invalid     throttle.Throttle // says that a request brings no valid limit
	UnclearCost throttle.Throttle // and that a response does not say its cost
}

// Lends tells whether requests hold what they take of it while they live.
func (z *Zone) Lends() bool {
	return slices.ContainsFunc(z.Rules(), func(r *store.Rule) bool { return limit.Lends(r.Algorithm().Name()) })
}

// Waits reports whether requests may be held.
func (z *Zone) Waits() bool {
	return slices.ContainsFunc(z.Limits(), func(l *limit.Limit) bool { return l.MaxWait > 0 || l.Mode == algorithms.ModeQueue })
}
