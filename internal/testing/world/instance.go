package world

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/request/limiter"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// instance is a Caddy. It is the store that it has, for all who use that, and notes what they ask and are told.
type instance struct {
	*redisstore.Store
	w      *world
	number int
	watch  *watch
	whole  atomic.Pointer[whole] // nil if there is only a store
	limits map[int]int64         // of zones, by the last config; the others have those of the plan
	over   atomic.Bool

	mu     sync.Mutex
	leases map[string]string // names in this world, by those of production, which count on from one world to the next
}

// killed is the failure of calls whose instance is no more.
const killed = "killed"

// dead reports whether the instance is no more, so that nobody gets its answers.
func (in *instance) dead() bool { return in.over.Load() }

// open starts an instance.
func (w *world) open(i int) *instance {
	rate := 1 + (float64(w.net.draw("rate", uint64(i))%2001)-1000)/1e6 // up to 0.1 % too fast or too slow
	clock := &watch{net: w.net, began: time.Now(), rate: rate, taken: make(map[time.Duration]bool)}
	in := &instance{w: w, number: i, watch: clock, limits: make(map[int]int64), leases: make(map[string]string)}
	o := w.plan.Layout.options()
	o.Timeout, o.PoolSize, o.Instance = storeTimeout, 20, fmt.Sprintf("i%d", i)
	o.Dial = func(ctx context.Context, _, address string) (net.Conn, error) { return w.dial(ctx, in, address) }
	in.Store = must(redisstore.New(o))
	time.Sleep(time.Microsecond) // until what it does in the background has begun, before anybody comes
	if w.plan.Whole {
		in.whole.Store(w.load(in))
	}
	return in
}

// close stops an instance.
func (in *instance) close(t *testing.T) {
	if g := in.whole.Load(); g != nil {
		g.release(t) // which closes the store
	} else if err := in.Close(); err != nil {
		t.Error(err)
	}
}

// whole is what an instance has above its store: one generation of its config, with the limiter and the zones of production.
type whole struct {
	store, local *pool.Ref
	limiter      *limiter.Limiter
}

// Identity implements [store.Backend].
func (in *instance) Identity() (string, error) {
	return fmt.Sprintf("world %d, instance %d", ran.Load(), in.number), nil
}

// Open implements [store.Backend].
func (in *instance) Open() (store.Store, error) { return in, nil }

func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}

// load makes a generation of an instance's config. It lives until release.
func (w *world) load(in *instance) *whole {
	g := new(whole)
	g.store = must(pool.AcquireOn(in.watch, in))
	g.local = must(pool.Acquire(&pool.Local{StandsFor: g.store.ID}))
	c := limiter.Config{Store: g.store, Local: g.local, Measure: true, Logger: zap.NewNop(), Clock: in.watch}
	for i := range w.plan.Zones {
		as := w.plan.Zones[i]
		as.Limit.Events = cmp.Or(in.limits[i], as.Limit.Events)
		of, at := as.config(w.plan), as.place(i)
		state := pool.AcquireZone(pool.ZoneKey(g.store.ID, at.Name))
		at.StoreID, at.Salt = g.store.ID, state.Salt
		z := must(zone.New(of, at, &state.Counters))
		z.KeyRules = as.rules() // whose bans may be shorter than those of configs
		c.Zones = append(c.Zones, z)
	}
	g.limiter = limiter.New(c)
	return g
}

// release ends a generation. The store closes with the last one, when the last request is over.
func (g *whole) release(t *testing.T) {
	for _, z := range g.limiter.Zones {
		pool.ReleaseZone(pool.ZoneKey(g.store.ID, z.Name))
	}
	for _, ref := range []*pool.Ref{g.local, g.store} {
		if err := ref.Release(); err != nil {
			t.Error(err)
		}
	}
}

// place is where the zone is.
func (z *Zone) place(i int) zone.Place {
	return zone.Place{
		Name: zoneName(i), Index: i, OnError: z.OnError, Matchers: sets(zonesHeader, zoneName(i)), Exempt: sets(sortHeader, exempt), Block: sets(sortHeader, blocked),
	}
}

// config is the zone as a config has it.
func (z *Zone) config(p *Plan) *config.Zone {
	c := &config.Zone{
		Key: "{http.request.header." + keyHeader + "}", Overrides: z.Overrides,
		Limit: config.Limit{
			Algorithm: z.Algorithm, MaxEvents: &config.Amount{Number: z.Limit.Events}, Window: config.Window{Duration: caddy.Duration(z.Limit.Window)},
			Refill: z.Limit.Refill, Mode: z.Limit.Mode, Align: z.Limit.Align, Lease: caddy.Duration(z.Limit.Lease),
			MaxWait: new(caddy.Duration(z.MaxWait)),
		},
		Cost: &config.Amount{From: "http.request.header." + costHeader},
	}
	if p.Addresses != 0 {
		c.IPv4Prefix, c.IPv6Prefix = 32, 64
	}
	if z.Lend != 0 {
		c.Lend = new(caddy.Duration(z.Lend))
	}
	if z.DryRun {
		c.Enforce = new(float64)
	}
	if !z.slots() {
		c.Charge = &config.Charge{Header: spentHeader}
		if z.Body {
			c.Charge = &config.Charge{JSON: []string{spentField}}
		}
		if z.Judges {
			c.Charge.Status = []string{"401"}
		}
	}
	if z.Paying > 0 {
		c.Plan = &config.Plans{Of: "{http.request.header." + sortHeader + "}", Plans: map[string]*config.Plan{paying: {Limit: config.Limit{MaxEvents: &config.Amount{Number: z.Paying}}}}}
	}
	return c
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

	exempt, blocked, paying = "exempt", "blocked", "paying"
)

// sets match requests with a value of a header.
func sets(header, value string) caddyhttp.MatcherSets {
	return caddyhttp.MatcherSets{{caddyhttp.MatchHeader{header: {value}}}}
}
