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
// client most. It lives as long as the request.
type record struct {
	*room
	binding             // of all zones
	shown    *binding   // of the zones that clients see; nil if they see all
	items    []item     // of RateLimit
	policies string     // RateLimit-Policy
	inUse    bool       // whether text has a value
	dryRuns  bool       // whether any zone is a dry run
	wouldBe  *zone.Zone // the dry run that would have refused
	exceeded string     // the zones that refuse the request, or would without a dry run; text, as one name needs no memory
	first    [1]item    // room for the items
}

// room is what a response has of a record for longer than its handlers: its writer, and values of headers. Header maps refer to
// these, so they are never used again.
type room struct {
	writers.Response // with the fields of all handlers as its watcher

	list [2]string // of the fields of Fields, if there are at most two
	text [40]byte  // of RateLimit
}

// binding is the decision of the zone that binds the client most. It has no more of it than is shown, because the
// record is the largest allocation of a request.
type binding struct {
	item
	outcome      outcome.Outcome
	dryRun       bool       // whether the zone is a dry run, because no other zone has decided
	zone         *zone.Zone // nil if nothing was decided
	override     string     // by which the store has decided
	quota, reset int64      // reset are whole seconds until all of the quota is back
	cost         int64
	retryAfter   int64 // in whole seconds; 0 if the request may pass
}

// recordVar is the request's variable that holds the record, for all handlers and error routes.
const recordVar = "rate_limit"

// String returns the value of {http.vars.rate_limit}.
func (t *record) String() string { return outcome.Names[t.outcome] }

// recordOf returns the record that earlier handlers have made, or makes one. If nothing will see it, that is the given one, which
// needs no memory for longer than the headers are set.
func (p *Responder) recordOf(v *limiter.Verdict, unseen *record) *record {
	vars := v.Request.Vars
	if t, ok := vars[recordVar].(*record); ok {
		return t
	}
	if p.unseen(v) {
		unseen.room = new(room)
		return unseen
	}
	made := new(struct { // in one allocation
		record
		own room
	})
	t := &made.record
	t.room, t.items = &made.own, t.first[:0]
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
	return !p.Around.Observe() && !v.Refused() && len(v.Rejections) == 0 && p.server != nil && p.server.Logs == nil
}

// note records what a zone has decided, with the seconds of Retry-After if it refuses. The client does not see dry runs.
func (t *record) note(e *limiter.Entry, retryAfter int64) {
	if e.DryRun {
		t.dryRuns = true
		if !e.Decision.Allowed {
			t.wouldBe = e.Zone
		}
	}
	t.adopt(e, retryAfter)
}

// adopt describes a zone with the seconds of Retry-After if it refuses, unless the zone that is described already
// binds the client more.
func (b *binding) adopt(e *limiter.Entry, retryAfter int64) {
	d := &e.Decision
	if !b.yieldsTo(e) {
		return
	}
	if d.Allowed {
		retryAfter = 0
	}
	*b = binding{zone: e.Zone, outcome: e.Outcome, dryRun: e.DryRun, cost: e.Cost, retryAfter: retryAfter}
	if e.Asked() {
		b.item, b.override, b.quota, b.reset = itemOf(e), d.Override, d.Quota, zone.CeilSeconds(d.ResetAfter)
	}
}

// yieldsTo reports whether another zone binds the client more. A dry run binds least. Of other zones, the one that refuses or
// has the smallest share left binds most.
func (b *binding) yieldsTo(e *limiter.Entry) bool {
	if b.zone == nil || b.dryRun != e.DryRun {
		return b.zone == nil || b.dryRun
	}
	left := float64(b.remaining) / float64(max(1, b.quota))
	return !e.Decision.Allowed || b.outcome.Passes() && b.outcome != outcome.DryRun && e.ShareLeft() < left
}

// number returns a number of the decision, by the names that placeholders and headers have for it.
func (b *binding) number(name string) int64 {
	switch name {
	case "limit", "X-RateLimit-Limit", "X-RateLimit-Burst-Capacity":
		return b.quota
	case "remaining", "X-RateLimit-Remaining":
		return b.remaining
	case "reset", "X-RateLimit-Reset": // not before a retry may pass
		return max(b.reset, b.retryAfter)
	case "retry_after", "X-RateLimit-Retry-After":
		return b.retryAfter
	}
	return b.cost // cost, X-RateLimit-Requested-Tokens
}
