package respond

import (
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// record is the decision on a request, for its headers, placeholders, access log and trace.
// All handlers that the request passes share one record, which describes the zone that binds the
// client most. It lives as long as the request. It also contains the response's writer.
type record struct {
	headerWatcher
	*values

	outcome    outcome.Outcome
	dryRun     bool              // whether the zone is a dry run, because no other zone has decided
	dryRuns    bool              // whether any zone is a dry run
	never      bool              // whether the cost is above the limit
	queueFull  bool              // whether it is refused because its queue has no place
	inUse      bool              // whether the text of values has one; here, because that memory is only written
	grpcCode   uint8             // of the refusal, if its caller speaks gRPC; or else 0
	zone       *zone.Zone        // nil if nothing was decided
	policy     *zone.QuotaPolicy // the zone's; nil if the store was not asked
	numbers    numbers           // of the decision
	share      float64           // of the quota that is left
	cost       int64
	retryAfter int64      // in whole seconds; 0 if the request may pass
	wouldBe    *zone.Zone // the dry run that would have refused
	exceeded   string     // the zones that refuse the request, or would without a dry run; text, as one name needs no memory
	policies   string     // RateLimit-Policy
	others     []item     // of RateLimit, beside the zone's
	shown      *record    // what headers are made of; nil if that is this record
}

// values are the values of headers, as far as there is room for them. Header maps refer to them, so
// they are never used again.
type values struct {
	list  [2]string // of the fields of Fields, if there are at most two
	retry [1]string // Retry-After
	text  [40]byte  // of a value
}

// seenRecord is a record with its values, so that a request needs only one allocation.
type seenRecord struct {
	record
	own values
}

// numbers are what clients see of a decision. It is a part of it, because the record is the largest
// allocation of a request.
type numbers struct {
	quota, remaining int64
	next, reset      int64 // whole seconds until more of the quota is back, and until all of it is
}

// recordVar is the request's variable that holds the record, for all handlers and error routes.
const recordVar = "rate_limit"

// String returns the value of {http.vars.rate_limit}.
func (t *record) String() string { return outcome.Names[t.outcome] }

// recordOf returns the record that earlier handlers have made, or makes one.
func (p *Responder) recordOf(v *limiter.Verdict) *record {
	vars := v.Request.Vars
	if t, ok := vars[recordVar].(*record); ok {
		return t
	}
	seen := new(seenRecord)
	t := &seen.record
	t.values = &seen.own
	if vars != nil {
		vars[recordVar] = t
	}
	v.Request.Replacer().Map(t.placeholder)
	if server := p.serverOf(v.Request.Request); server != nil && server.Logs != nil {
		t.toAccessLog(v.Request.Request)
	}
	return t
}

// unseen reports whether nothing looks at the record of a request, so that it serves its headers alone.
func (p *Responder) unseen(v *limiter.Verdict) bool {
	return !p.Around.Observe() && !p.Around.Trace() && !v.Refused && len(v.Rejections) == 0 && p.server != nil && p.server.Logs == nil
}

// recordBefore returns the record that handlers have made, or nil.
func recordBefore(r *http.Request) *record {
	t, _ := caddyhttp.GetVar(r.Context(), recordVar).(*record)
	return t
}

// binds reports whether a zone binds the client more than the one that the record describes. A dry
// run binds least. Of other zones, the one that refuses or has the smallest share left binds most.
func (t *record) binds(dryRun, refuses bool, share float64) bool {
	if t.zone == nil || t.dryRun != dryRun {
		return t.zone == nil || t.dryRun
	}
	return refuses || t.outcome.Passes() && t.outcome != outcome.DryRun && share < t.share
}

// adopt makes the record describe a zone, unless the zone that it describes already binds the client
// more. It reports whether it has done so.
func (t *record) adopt(v *limiter.Verdict, i int) bool {
	d, dryRun := &v.Decisions[i], i >= v.Enforced
	share := limiter.ShareLeft(d)
	if !t.binds(dryRun, !d.Allowed, share) {
		return false
	}
	e := &v.Entries[i]
	t.zone, t.policy, t.cost, t.outcome, t.retryAfter, t.dryRun = e.Zone, e.Policy, v.Checks[i].Cost, e.Outcome, 0, dryRun
	t.share, t.never, t.queueFull = share, zone.NeverPasses(d, t.cost), e.Policy.QueueFull(d, t.cost)
	t.numbers = numbers{d.Quota, d.Remaining, zone.CeilSeconds(e.Policy.Waits(d, t.cost).Next), zone.CeilSeconds(d.ResetAfter)}
	return true
}

// adoptDryRuns records what the dry runs have decided. The client does not see it.
func (t *record) adoptDryRuns(v *limiter.Verdict) {
	i := v.BindingDryRun()
	if t.dryRuns = true; !v.Decisions[i].Allowed {
		t.wouldBe = v.Entries[i].Zone
	}
	t.adopt(v, i)
}

// reject records a refusal for which the store was not asked.
func (t *record) reject(f *limiter.Refusal) {
	o := f.Outcome()
	if f.DryRun {
		t.dryRuns, t.wouldBe = true, f.Zone
	}
	if t.binds(f.DryRun, true, 0) {
		t.zone, t.policy, t.outcome, t.retryAfter, t.dryRun = f.Zone, nil, o, 0, f.DryRun
	}
}

// addPolicies adds the limits of a handler to RateLimit-Policy, each once.
func (t *record) addPolicies(by *Responder, v *limiter.Verdict) {
	if t.policies == "" {
		t.policies = by.policiesOf(v)
		return
	}
	for i := range v.Enforced {
		if p := policyOf(v, i); !v.Entries[i].Zone.Hidden() && !hasPolicy(t.policies, p) {
			t.policies = appendPolicy(t.policies, p)
		}
	}
}
