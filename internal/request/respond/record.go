package respond

import (
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/request/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/internal/writers"
)

// record is the decision on a request, for its headers, placeholders and access log.
// All handlers that the request passes share one record, which describes the zone that binds the
// client most. It lives as long as the request. It also contains the response's writer.
type record struct {
	writers.Response // with the fields of all handlers as its watcher
	*values

	binding             // of all zones
	shown    *binding   // of the zones that clients see; nil if they see all
	items    []item     // of RateLimit
	policies string     // RateLimit-Policy
	inUse    bool       // whether the text of values has one; here, because that memory is only written
	dryRuns  bool       // whether any zone is a dry run
	wouldBe  *zone.Zone // the dry run that would have refused
	exceeded string     // the zones that refuse the request, or would without a dry run; text, as one name needs no memory
}

// binding is the decision of the zone that binds the client most. It has no more of it than is shown, because the
// record is the largest allocation of a request.
type binding struct {
	item
	outcome      outcome.Outcome
	dryRun       bool       // whether the zone is a dry run, because no other zone has decided
	zone         *zone.Zone // nil if nothing was decided
	quota, reset int64      // reset are whole seconds until all of the quota is back
	cost         int64
	retryAfter   int64 // in whole seconds; 0 if the request may pass
}

// values are the values of headers, as far as there is room for them. Header maps refer to them, so
// they are never used again.
type values struct {
	list [2]string // of the fields of Fields, if there are at most two
	text [40]byte  // of a value
}

// seenRecord is a record with its values, so that a request needs only one allocation.
type seenRecord struct {
	record
	own   values
	first [1]item // of the items
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
	if t.values = &seen.own; p.unseen(v) {
		return t
	}
	t.items = seen.first[:0]
	if vars != nil {
		vars[recordVar] = t
	}
	v.Request.Replacer().Map(t.placeholder)
	if server := p.serverOf(v.Request.Request); server != nil && server.Logs != nil {
		if extra, ok := v.Request.Context().Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
			extra.Add(zap.Object(recordVar, t))
		}
	}
	return t
}

// unseen reports whether nothing looks at the record of a request, so that it serves its headers alone and has no items.
func (p *Responder) unseen(v *limiter.Verdict) bool {
	return !p.Around.Observe() && !v.Refused && len(v.Rejections) == 0 && p.server != nil && p.server.Logs == nil
}

// binds reports whether a zone binds the client more than the one that is described. A dry
// run binds least. Of other zones, the one that refuses or has the smallest share left binds most.
func (b *binding) binds(dryRun, refuses bool, share float64) bool {
	if b.zone == nil || b.dryRun != dryRun {
		return b.zone == nil || b.dryRun
	}
	left := float64(b.remaining) / float64(max(1, b.quota))
	return refuses || b.outcome.Passes() && b.outcome != outcome.DryRun && share < left
}

// adopt describes a zone with the seconds of Retry-After if it refuses, unless the zone that is described already
// binds the client more.
func (b *binding) adopt(e *limiter.Entry, retryAfter int64) {
	d := &e.Decision
	if !b.binds(e.DryRun, !d.Allowed, e.ShareLeft()) {
		return
	}
	if d.Allowed {
		retryAfter = 0
	}
	*b = binding{zone: e.Zone, outcome: e.Outcome, dryRun: e.DryRun, cost: e.Cost, retryAfter: retryAfter}
	if e.Asked() {
		b.item, b.quota, b.reset = itemOf(e), d.Quota, zone.CeilSeconds(d.ResetAfter)
	}
}

// untilFull returns the seconds until the full quota is back, and at least Retry-After.
func (b *binding) untilFull() int64 { return max(b.reset, b.retryAfter) }

// adoptDryRuns records what the dry runs have decided. The client does not see it.
func (t *record) adoptDryRuns(v *limiter.Verdict) {
	e := v.MostBinding(func(e *limiter.Entry) bool { return e.DryRun })
	if e == nil {
		return
	}
	if t.dryRuns = true; !e.Decision.Allowed {
		t.wouldBe = e.Zone
	}
	t.adopt(e, 0)
}

// reject records a refusal for which the store was not asked.
func (t *record) reject(e *limiter.Entry) {
	if e.DryRun {
		t.dryRuns, t.wouldBe = true, e.Zone
	}
	t.adopt(e, 0)
}
