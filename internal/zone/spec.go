package zone

import (
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/cost"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/limit"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// The values of on_store_error.
const (
	AllowOnError = "allow"
	DenyOnError  = "deny"
	LocalOnError = "local"
)

// The values of missing_key.
const (
	MissingShare  = "share"
	MissingSkip   = "skip"
	MissingReject = "reject"
)

// Spec is what a config says of a zone, after all checks but those of its limits, and with the defaults
// filled in. It does not change.
type Spec struct {
	Name         string
	Index        int // among the zones of the handler
	StoreID      string
	OnStoreError string // the zone's, or else the handler's
	JSON         []byte // the zone's config
	Salt         uint64 // tells generations of the zone apart

	Matchers caddyhttp.MatcherSets
	Exempt   caddyhttp.MatcherSets
	Block    caddyhttp.MatcherSets
	Fields   *Fields // of bodies; nil if the zone looks at none

	Key      string
	Template *key.Template // of the key

	limit.Limit                         // as written
	Plan         *limit.Plans           // as written; nil without plans
	PlanLimits   map[string]limit.Limit // of the plans that have one, with what they take from the zone's
	PlanTemplate *key.Template          // the name of a request's plan
	Lend         time.Duration          // for how long units may be held: see [algorithms.Limit]; or SuitableLend

	Cost             limit.Amount
	CostRequest      *cost.Request // nil without one
	ChargeOnResponse *caddyhttp.ResponseMatcher
	CostHeader       string
	CostBrokenOff    *int64
	CostResponse     *cost.Response // nil without one

	Hidden   bool // no header and no body tells clients about the zone
	DryRun   bool
	Enforce  *float64
	KeyRules *store.KeyRules // overrides and bans of single keys; nil without them

	// Why and with which status requests are rejected without asking the store.
	MissingKey       string
	MissingKeyStatus int
	InvalidLimit     int
	BlockStatus      int
	Challenge        string // for requests without a key; empty if there is none
}

// Limits returns the zone's own limit and those of its plans, as they are written.
func (s *Spec) Limits() []*limit.Limit {
	limits := []*limit.Limit{&s.Limit}
	if s.Plan != nil {
		for _, p := range s.Plan.Plans {
			if p != nil {
				limits = append(limits, &p.Limit)
			}
		}
	}
	return limits
}

// ChargesLate reports whether the charge depends on the response.
func (s *Spec) ChargesLate() bool {
	return s.ChargeOnResponse != nil || s.SaysCost()
}

// SaysCost reports whether the response says what the request costs.
func (s *Spec) SaysCost() bool { return s.CostHeader != "" || s.CostResponse != nil }

// Overrides reports whether operators may set overrides for single keys.
func (s *Spec) Overrides() bool { return s.KeyRules != nil && s.KeyRules.Overrides }

// describe describes what all zones of the same name must agree on, besides the key. The limits must be valid.
func (s *Spec) describe() string {
	var text string
	if s.MaxEvents != nil {
		text = s.Limit.Describe()
	}
	if s.Plan != nil {
		if text != "" {
			text += " and "
		}
		text += s.Plan.Describe(&s.Limit)
	}
	if s.Lend != 0 {
		text += " lend " + duration.Format(s.Lend)
	}
	if s.Overrides() {
		text += " with overrides"
	}
	if s.KeyRules != nil && s.KeyRules.Ban != nil {
		b := s.KeyRules.Ban
		text += fmt.Sprintf(" ban %s after %d in %s", duration.Format(b.For), b.After, duration.Format(b.Within))
		if b.UpTo != 0 {
			text += " up_to " + duration.Format(b.UpTo)
		}
	}
	return text
}

// looksAtRequests reports whether options look at single requests, so that the zone's limit and its cost are
// not those of all.
func (s *Spec) looksAtRequests() bool {
	return s.Plan != nil || s.Limit.Varies() || s.Cost.From != "" || s.CostRequest != nil || s.Fields != nil || len(s.Exempt) > 0 || len(s.Block) > 0 ||
		s.MissingKey != MissingShare || s.DryRun || s.Enforce != nil
}
