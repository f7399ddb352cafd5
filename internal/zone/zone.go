// Package zone is a zone at run time: which requests it counts, under which key, and which limit
// and cost its policies choose for a request.
package zone

import (
	"slices"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/cost"
	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/throttle"
	"github.com/seed-161337e5/caddyratelimit/limit"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// The values of on_store_error.
const (
	AllowOnError = "allow"
	DenyOnError  = "deny"
	LocalOnError = "local"
)

// Zone is a zone at run time. It does not change after it was provisioned, but for its counters.
type Zone struct {
	Name         string
	Index        int // among the zones of the handler
	Matchers     caddyhttp.MatcherSets
	Template     *key.Template // of the key
	Stats        *stats.Counters
	StoreID      string
	OnStoreError string // the zone's, or else the handler's
	Exceeded     error  // the error of a refused request
	JSON         []byte // the zone's config
	Description  string // the part of the config that all uses of the name share, in words

	limit.Limit                // as written
	Plan         *limit.Plans  // nil without plans
	Builder      PolicyBuilder // makes the policies of other limits
	OwnPolicies  Policies      // of the zone's own limit
	Plans        map[string]*Plan
	PlanByName   map[string]*Plan // by normalized name, see PlanTemplate
	PlanTemplate *key.Template    // the name of a request's plan
	DefaultPlan  *Plan            // for requests without a plan; nil if these are rejected
	Policy       *QuotaPolicy     // nil if it depends on the request

	NearLimit float64 // the share of a limit that must be used for a request to count as near it, in percent

	Cost      *limit.Amount
	FixedCost int64

	HasPolicies bool // Apply must be called for each request
	RequestPolicies

	ChargesLate      bool // the charge depends on the response
	ChargeOnResponse *caddyhttp.ResponseMatcher
	CostHeader       string
	CostBrokenOff    *int64
	CostResponse     *cost.Response // nil without one
	CostRequest      *cost.Request  // nil without one

	Overrides bool
	KeyRules  *store.KeyRules // overrides and bans of single keys; nil without them

	Misses    Misses             // requests that came to the zone and did not meet it
	Forwarded clientip.Forwarded // by a proxy that is not trusted, in zones whose keys have the client's address

	invalid     throttle.Throttle // for warnings about requests without a valid limit
	UnclearCost throttle.Throttle // for warnings about responses without a valid cost
}

// Lends reports whether any of the zone's limits counts slots, which requests hold until they are
// over.
func (z *Zone) Lends() bool {
	return slices.ContainsFunc(z.Rules(), func(r *store.Rule) bool { return limit.Lends(r.Algorithm().Name()) })
}

// Borrows reports whether the store may lend parts of any of the zone's limits.
func (z *Zone) Borrows() bool {
	return slices.ContainsFunc(z.Rules(), func(r *store.Rule) bool { return r.Lend() > 0 })
}

// IsNear reports whether a request that was allowed has brought its key near the limit.
func (z *Zone) IsNear(d *algorithms.Decision) bool {
	return float64(d.Quota-d.Left())*100 >= z.NearLimit*float64(d.Quota)
}

// Waits reports whether any of the zone's limits can hold requests.
func (z *Zone) Waits() bool {
	return slices.ContainsFunc(z.Limits(), func(l *limit.Limit) bool { return l.MaxWait > 0 || l.Mode == algorithms.ModeQueue })
}
