package caddyratelimit

import (
	"slices"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/throttle"
	"github.com/seed-161337e5/caddyratelimit/limit"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// liveZone is a zone at run time: what of its config requests meet, made ready.
type liveZone struct {
	name         string
	number       int // among the zones of the handler
	matchers     caddyhttp.MatcherSets
	key          *key.Template
	tally        *stats.Counters
	storeID      string
	onStoreError string // the zone's, or the handler's
	exceeded     error  // what a refusal ends the request with
	written      []byte // the zone as the config has it, in JSON
	description  string // what all uses of its name agree on, in words

	limit.Limit
	Plan    *limit.Plans // nil: one limit for all
	own     grants
	plans   map[string]*plan
	planFor map[string]*plan // by their names as planOf has them
	planOf  *key.Template
	noPlan  *plan  // what holds without one; nil refuses
	grant   *grant // nil if it depends on the request

	Cost *limit.Amount
	cost int64

	special bool // the zone has policies that look at each request
	exempt  caddyhttp.MatcherSets
	block   caddyhttp.MatcherSets
	Reserve caddyhttp.MatcherSets // the requests that slots are kept for; none: no slots are

	late             bool // what a request is charged depends on its response
	ChargeOnResponse *caddyhttp.ResponseMatcher
	CostHeader       string
	CostBrokenOff    *int64

	Overrides bool
	sanctions *store.Sanctions // what stands above the limit for single keys; nil: nothing

	DryRun   bool
	Enforce  *float64
	enforced uint64 // seed of the hash that chooses keys

	// What requests are refused with, without asking the store.
	Key                  string
	MissingKey           string
	MissingKeyStatus     int
	RepeatedValuesStatus int
	InvalidLimit         int
	BlockStatus          int

	invalid throttle.Throttle // says that a request brings no valid limit
	unclear throttle.Throttle // and that a response does not say its cost
}

// lends tells whether requests hold what they take of it while they live.
func (z *liveZone) lends() bool {
	return slices.ContainsFunc(z.rules(), func(r *store.Rule) bool { return limit.Lends(r.Algorithm().Name()) })
}
