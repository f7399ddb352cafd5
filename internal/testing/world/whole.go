package world

import (
	"cmp"
	"fmt"
	"net/http"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/cost"
	keys "github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/limit"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// whole is what an instance has above its store: one generation of its config, with the limiter and the zones of production.
type whole struct {
	store, local *pool.Ref
	limiter      *limiter.Limiter
	zones        []*zone.Zone
	names        []string // of what the zones keep across generations
}

// backend opens the store of an instance.
type backend struct {
	id    string
	store *seam
}

func (b *backend) Identity() (string, error)  { return b.id, nil }
func (b *backend) Open() (store.Store, error) { return b.store, nil }

// load makes a generation of an instance's config. It lives until release.
func (w *world) load(in *instance) *whole {
	g, err := w.generation(in)
	if err != nil {
		panic(err)
	}
	return g
}

func (w *world) generation(in *instance) (g *whole, err error) {
	g = new(whole)
	if g.store, err = pool.AcquireOn(in.watch, &backend{fmt.Sprintf("world %d, instance %d", ran.Load(), in.number), in.store}); err != nil {
		return nil, err
	}
	if g.local, err = pool.Acquire(&pool.Local{StandsFor: g.store.ID}); err != nil {
		return nil, err
	}
	c := limiter.Config{Store: g.store, Local: g.local, Measure: true, Logger: zap.NewNop(), Clock: in.watch}
	for i := range w.plan.Zones {
		as := w.plan.Zones[i]
		as.Limit.Events = cmp.Or(in.limits[i], as.Limit.Events)
		spec, err := as.spec(i)
		if err == nil {
			err = w.plan.address(&spec)
		}
		if err != nil {
			return nil, err
		}
		name := pool.ZoneKey(g.store.ID, spec.Name)
		state := pool.AcquireZone(name)
		g.names = append(g.names, name)
		spec.StoreID, spec.Salt = g.store.ID, state.Salt
		z, err := zone.New(spec, &state.Counters)
		if err != nil {
			return nil, err
		}
		c.Zones = append(c.Zones, z)
	}
	g.zones, g.limiter = c.Zones, limiter.New(c)
	return g, nil
}

// release ends a generation. The store closes with the last one, when the last request is over.
func (g *whole) release(t *testing.T) {
	for _, name := range g.names {
		pool.ReleaseZone(name)
	}
	for _, ref := range []*pool.Ref{g.local, g.store} {
		if err := ref.Release(); err != nil {
			t.Error(err)
		}
	}
}

// spec is the zone as a config has it.
func (z *Zone) spec(i int) (s zone.Spec, err error) {
	of := func(n int64) limit.Amount { return limit.Amount{Number: n} }
	s = zone.Spec{
		Name: zoneName(i), Index: i, OnStoreError: z.OnError, Matchers: sets(zonesHeader, zoneName(i)),
		Exempt: sets(sortHeader, exempt), Block: sets(sortHeader, blocked), BlockStatus: http.StatusForbidden,
		Key: "{http.request.header." + keyHeader + "}", Lend: z.hold(), DryRun: z.DryRun, KeyRules: z.rules(),
		Limit: limit.Limit{
			Algorithm: z.Algorithm, MaxEvents: &limit.Amount{Number: z.Limit.Events}, Window: limit.Window{Duration: caddy.Duration(z.Limit.Window)},
			Burst: of(z.Limit.Burst), Refill: z.Limit.Refill, Mode: z.Limit.Mode, Align: z.Limit.Align, Lease: caddy.Duration(z.Limit.Lease),
			MaxWait: caddy.Duration(z.MaxWait),
		},
		Cost:       limit.Amount{From: "http.request.header." + costHeader},
		CostHeader: spentHeader, MissingKey: zone.MissingShare, InvalidLimit: http.StatusForbidden,
	}
	if z.Enforced > 0 {
		s.Enforce = &z.Enforced
	}
	if z.slots() || z.Body {
		s.CostHeader = ""
	}
	if err := z.Costs.addTo(&s); err != nil {
		return s, err
	}
	if z.Body {
		if s.CostResponse = (&cost.Response{JSON: []string{spentField}}); s.CostResponse.Compile() != nil {
			panic("cost_response")
		}
	}
	if z.Judges && !z.slots() {
		s.ChargeOnResponse = &caddyhttp.ResponseMatcher{StatusCode: []int{http.StatusUnauthorized}}
	}
	if z.Paying > 0 {
		s.Plan = &limit.Plans{Of: "{http.request.header." + sortHeader + "}", Plans: map[string]*limit.Plan{paying: {Limit: limit.Limit{MaxEvents: &limit.Amount{Number: z.Paying}}}}}
		s.PlanLimits = s.Plan.Limits(&s.Limit)
		if s.PlanTemplate, err = keys.NewText("plan", s.Plan.Of); err != nil {
			return s, err
		}
	}
	s.Template, err = keys.New(s.Key, 0, 0)
	return s, err
}

// addTo adds these costs to a zone, which reads them in bodies.
func (c *Costs) addTo(s *zone.Spec) error {
	if !c.Asks {
		return nil
	}
	s.Cost, s.CostRequest = limit.Amount{Number: 1}, &cost.Request{JSON: []string{askedField}}
	if c.Unreadable > 0 {
		s.CostRequest.Unreadable = &c.Unreadable
	}
	return s.CostRequest.Compile()
}

// zoneName is the name of a zone, as stores have it.
func zoneName(number int) string { return fmt.Sprintf("z%d", number) }

// The headers of requests. A request has one of zonesHeader for each zone that it meets.
const (
	zonesHeader = "X-Zone"
	sortHeader  = "X-Sort"
	keyHeader   = "X-Key"
	costHeader  = "X-Cost"
	spentHeader = "X-Spent" // of responses
	spentField  = "spent"   // of their bodies

	exempt, blocked, paying, garbled = "exempt", "blocked", "paying", "garbled"
)

// has is a matcher of requests with a value of a header.
type has struct{ header, value string }

// MatchWithError implements [caddyhttp.RequestMatcherWithError].
func (h has) MatchWithError(r *http.Request) (bool, error) {
	for _, v := range r.Header[h.header] {
		if v == h.value {
			return true, nil
		}
	}
	return false, nil
}

func sets(header, value string) caddyhttp.MatcherSets {
	return caddyhttp.MatcherSets{{has{header, value}}}
}
