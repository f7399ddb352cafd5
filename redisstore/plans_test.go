package redisstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	_ "github.com/seed-161337e5/caddyratelimit" // the handler
	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/model"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// counting are the algorithms whose charges last longer than a request.
var counting = []string{"sliding_window_log", "sliding_window_counter", "fixed_window", "token_bucket", "leaky_bucket"}

// TestPlansWipeNothing: requests under one plan never erase what a client has used under another
// one, of another window or of the same.
func TestPlansWipeNothing(t *testing.T) {
	deep.InTurn(t)
	server := redistest.Start(t)
	for _, name := range counting {
		for _, where := range []string{"memory", "redis"} {
			t.Run(name+"/"+where, func(t *testing.T) {
				p := newPair(t, server)
				now := storetest.Start
				wait := func(d time.Duration) {
					now += d.Microseconds()
					p.set(now, 0)
				}
				wait(0)

				h := p.handler(t, where, "hour "+name, map[string]algorithms.Limit{
					"POST": {Events: 5, Window: time.Hour}, "GET": {Events: 100, Window: time.Second},
				}, name)
				posts := 0
				for range 4 {
					posts += passed(t, h, "POST", 20)
					wait(2100 * time.Millisecond)
					passed(t, h, "GET", 1)
					wait(1100 * time.Millisecond)
				}
				if posts != 5 {
					t.Errorf("%d POSTs passed within 13 s under 5 in an hour", posts)
				}

				var gets [2]int
				for with := range gets {
					h := p.handler(t, where, fmt.Sprint("seconds ", with, name), map[string]algorithms.Limit{
						"POST": {Events: 5, Window: 10 * time.Second}, "GET": {Events: 100, Window: 10 * time.Second},
					}, name)
					wait(time.Duration(20_000_000-now%10_000_000) * time.Microsecond)
					gets[with] = passed(t, h, "GET", 110)
					for range 2 {
						wait(2050 * time.Millisecond)
						if with == 1 {
							passed(t, h, "POST", 1)
						}
						gets[with] += passed(t, h, "GET", 110)
					}
				}
				if gets[1] > gets[0] {
					t.Errorf("%d GETs passed under 100 in 10 s, and %d with a POST between", gets[0], gets[1])
				}
			})
		}
	}
}

// passed returns how many of n requests of a method pass a handler.
func passed(t testing.TB, h caddytest.Handler, method string, n int) (passed int) {
	t.Helper()
	for range n {
		if serve(t, h, method, "client", 1) {
			passed++
		}
	}
	return passed
}

// TestPlansEqualModel runs random requests through handlers with a plan for each method. Each
// store has two handlers with different plans: half of the fleet has an older config. Now and
// then the key gets an override with a limit, or loses it. The requests that pass are those that
// the model lets pass, and those of each limit also pass by themselves.
func TestPlansEqualModel(t *testing.T) {
	deep.InTurn(t)
	server := redistest.Start(t)
	for _, name := range counting {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, server)
			seed := uint64(time.Now().UnixNano())
			r := rand.New(rand.NewPCG(seed, 0))
			admitted := 0
			for steps, run := deep.Steps(400, 100_000), 0; steps > 0; run++ {
				f := newPlanned(t, p, r, name, name+strconv.Itoa(run))
				for range min(steps, 200) {
					steps--
					f.step(seed)
				}
				admitted += f.admitted
			}
			if admitted == 0 {
				t.Error("nothing passed")
			}
		})
	}
}

// planned is a key of a zone in four handlers.
type planned struct {
	testing.TB
	*rand.Rand
	pair     *pair
	name     string
	zone     string
	now      int64
	handlers [2]map[string]caddytest.Handler // by config and store
	plans    [2]map[string]algorithms.Limit  // by config
	own      *algorithms.Limit
	model    *model.Key
	alone    map[string]*model.Key // by limit
	admitted int
}

var methods = []string{"GET", "POST", "PUT"}

func newPlanned(t testing.TB, p *pair, r *rand.Rand, name, zone string) *planned {
	f := &planned{
		TB: t, Rand: r, pair: p, name: name, zone: zone, now: storetest.Start,
		model: model.New(name), alone: make(map[string]*model.Key),
	}
	for config := range f.handlers {
		f.plans[config] = make(map[string]algorithms.Limit)
		for _, method := range methods {
			if old, ok := f.plans[0][method]; ok && r.IntN(2) == 0 {
				f.plans[config][method] = old
			} else {
				f.plans[config][method] = f.limit()
			}
		}
		f.handlers[config] = make(map[string]caddytest.Handler)
		for _, where := range []string{"memory", "redis"} {
			f.handlers[config][where] = p.handler(t, where, zone, f.plans[config], name)
		}
	}
	return f
}

// limit draws one of few, so that some share a family.
func (f *planned) limit() algorithms.Limit {
	l := algorithms.Limit{Events: 1 + f.Int64N(3)*3, Window: time.Duration(1+f.IntN(3)) * time.Second}
	switch f.name {
	case "token_bucket":
		l.Burst = f.Int64N(3) * 5
		l.Refill = []string{"", algorithms.RefillInterval}[f.IntN(2)]
	case "leaky_bucket":
		l.Burst = f.Int64N(3) * 5
	case "fixed_window":
		l.Align = []string{"", algorithms.AlignFirstRequest}[f.IntN(2)]
	}
	return l
}

func (f *planned) step(seed uint64) {
	f.now += f.Int64N(1 << f.IntN(22))
	f.pair.set(f.now, 0)
	if f.IntN(20) == 0 {
		f.override()
	}
	config, method, cost := f.IntN(2), methods[f.IntN(len(methods))], 1+f.Int64N(1+f.Int64N(4))
	limit := f.plans[config][method]
	if f.own != nil {
		limit = f.over()
	}
	want := f.model.Admit(limit, f.now, cost, "")
	for where, h := range f.handlers[config] {
		if got := serve(f.TB, h, method, "client", cost); got != want {
			f.Fatalf("seed %d, %s at %d: a cost of %d under %+v passes: %v, by the model: %v", seed, where, f.now, cost, limit, got, want)
		}
	}
	if !want {
		return
	}
	f.admitted++
	if limit.Align == algorithms.AlignFirstRequest || limit.Refill == algorithms.RefillInterval {
		return // windows and refills begin with requests under other limits, too
	}
	name := fmt.Sprintf("%+v", limit)
	if f.alone[name] == nil {
		f.alone[name] = model.New(f.name)
	}
	if !f.alone[name].Admit(limit, f.now, cost, "") {
		f.Fatalf("seed %d, at %d: a cost of %d passed under %+v beside others, and alone it does not", seed, f.now, cost, limit)
	}
}

// override sets or clears an override with a limit, in both stores.
func (f *planned) override() {
	if f.admitted == 0 {
		return // the stores have not been asked yet, and do not know the zone
	}
	a, _ := algorithms.Get(f.name)
	f.own = nil
	if f.IntN(2) == 0 {
		l := f.limit()
		f.own = &l
	}
	ctx := context.Background()
	for _, where := range []string{"memory", "redis"} {
		s := f.pair.clocked(f, where)
		rule, err := store.NewRule(f.zone, a, f.plans[0][methods[0]], s.salt)
		if err != nil {
			f.Fatal(err)
		}
		if f.own == nil {
			err = s.Clear(ctx, rule, "client")
		} else {
			err = s.Set(ctx, rule, "client", store.Override{Kind: store.KindLimit, Limit: *f.own})
		}
		if err != nil {
			f.Fatal(err)
		}
	}
}

// over returns the limit of an override. Options that it lacks are those of the limit that it was
// set for.
func (f *planned) over() algorithms.Limit {
	l, base := *f.own, f.plans[0][methods[0]]
	if l.Refill == "" {
		l.Refill = base.Refill
	}
	if l.Align == "" {
		l.Align = base.Align
	}
	return l
}

// clocked returns one store of the pair for handlers.
func (p *pair) clocked(t testing.TB, where string) *clockedStore {
	t.Helper()
	if p.forHandlers == nil {
		p.forHandlers = make(map[string]*clockedStore)
	}
	s, ok := p.forHandlers[where]
	if !ok {
		s = &clockedStore{keeper: map[string]keeper{"memory": p.memory, "redis": p.redis}[where]}
		s.named = caddytest.NewStore(t, func() (store.Store, error) { return s, nil })
		p.forHandlers[where] = s
	}
	return s
}

// handler returns a handler with a plan for each method, whose store is one of the pair.
func (p *pair) handler(t testing.TB, where, zone string, plans map[string]algorithms.Limit, algorithm string) caddytest.Handler {
	t.Helper()
	written := make(map[string]any)
	for name, l := range plans {
		plan := map[string]any{"algorithm": algorithm, "max_events": l.Events, "window": l.Window.String()}
		for option, value := range map[string]any{"burst": l.Burst, "refill": l.Refill, "mode": l.Mode, "align": l.Align} {
			if value != "" && value != int64(0) {
				plan[option] = value
			}
		}
		written[name] = plan
	}
	zones, err := json.Marshal(map[string]any{zone: map[string]any{
		"key": "{http.request.header.Client}", "cost": "{http.request.header.Cost} 1", "overrides": true,
		"plan": map[string]any{"of": "{http.request.method}", "plans": written, "reject": 405},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return caddytest.Load(t, fmt.Sprintf(`{%s"rate_limits": %s}`, p.clocked(t, where).named.Option(), zones))
}

// serve reports whether a request passes a handler.
func serve(t testing.TB, h caddytest.Handler, method, client string, cost int64) (passed bool) {
	t.Helper()
	w := httptest.NewRecorder()
	r := caddytest.Request(w, "203.0.113.7:1")
	r.Method = method
	r.Header.Set("Client", client)
	r.Header.Set("Cost", strconv.FormatInt(cost, 10))
	err := h.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
		passed = true
		return nil
	}))
	var refused caddyhttp.HandlerError
	if errors.As(err, &refused) && refused.StatusCode != http.StatusTooManyRequests || w.Code >= http.StatusInternalServerError {
		t.Fatalf("%s: %v, status %d", method, err, w.Code)
	}
	return passed
}

// clockedStore is a store of a pair, for handlers. The test closes the store behind it.
type clockedStore struct {
	keeper
	named *caddytest.Store
	salt  uint64 // of the zone of the last request
}

type keeper interface {
	store.Store
	store.Overrider
}

// Take implements [store.Store].
func (s *clockedStore) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	s.salt = checks[0].Rule.Salt()
	return s.keeper.Take(ctx, checks, decisions)
}

// Close implements [store.Store].
func (*clockedStore) Close() error { return nil }
