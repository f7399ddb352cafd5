package prepaid

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// server is a store of one key with fixed windows, which loses all messages or none.
type server struct {
	mu    sync.Mutex
	trip  time.Duration
	loses bool
	zones []*zone
	last  int64 // no two calls have the same microsecond
	calls int
}

type zone struct {
	rule  *store.Rule
	state algorithms.State
}

func (s *server) zone(rule *store.Rule) *zone {
	return s.zones[slices.IndexFunc(s.zones, func(z *zone) bool { return z.rule == rule })]
}

// lock waits until a call is there, and the time is another one than in the call before.
func (s *server) lock() (now int64) {
	time.Sleep(s.trip / 2)
	s.mu.Lock()
	for now = time.Now().UnixMicro(); now == s.last; now = time.Now().UnixMicro() {
		s.mu.Unlock()
		time.Sleep(time.Microsecond)
		s.mu.Lock()
	}
	s.last = now
	return now
}

func (s *server) Take(_ context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	now := s.lock()
	defer time.Sleep(s.trip / 2)
	defer s.mu.Unlock()
	if s.loses {
		return errors.New("lost")
	}
	s.calls++
	pass, before := true, make([]algorithms.State, len(checks))
	for i := range checks {
		z := s.zone(checks[i].Rule)
		before[i] = z.state
		decisions[i] = z.decide(now, checks[i].Cost, checks[i].Ahead)
		pass = pass && decisions[i].Allowed
	}
	for i := range checks {
		if z := s.zone(checks[i].Rule); !pass {
			if z.state = before[i]; decisions[i].Allowed {
				decisions[i] = z.decide(now, 0, 0)
			}
		}
	}
	return nil
}

func (z *zone) decide(now, cost, ahead int64) (d algorithms.Decision) {
	a, p, lasts := z.rule.Counter(), z.rule.At(now).Params, int64(0)
	if z.state, d = a.Take(z.state, p, now, cost); d.Allowed && ahead > 0 {
		z.state, d.Units, lasts = a.Ahead(z.state, p, now, cost, ahead)
	}
	d.At, d.Lasts = now, time.Duration(lasts)*time.Microsecond
	return d
}

func (s *server) Adjust(adjustments ...store.Adjustment) {
	for _, a := range adjustments {
		go func() {
			now := s.lock()
			defer s.mu.Unlock()
			if z := s.zone(a.Rule); !s.loses {
				z.state = z.rule.Counter().Adjust(z.state, z.rule.At(now).Params, now, a.At, a.Turn, a.Delta)
			}
		}()
	}
}

func (s *server) Forget(*store.Rule, string) {}

// stand is a layer, beside another one, on a server without a way: nothing takes time. One of its zones has a window of an
// hour, which holds for 10 s, and the other one has two units.
type stand struct {
	*testing.T
	server    *server
	one, two  *Layer
	hot, full store.Check
}

// hour is a window of which next to nothing is over in a test.
var hour = algorithms.Limit{Events: 1000, Window: time.Hour, Hold: 10 * time.Second}

func newStand(t *testing.T, limit algorithms.Limit) *stand {
	s := &stand{T: t, server: new(server)}
	for name, l := range map[string]algorithms.Limit{"hot": limit, "full": {Events: 2, Window: time.Hour}} {
		rule, err := store.NewRule(name, algorithms.FixedWindow{}, l, 0)
		if err != nil {
			t.Fatal(err)
		}
		s.server.zones = append(s.server.zones, &zone{rule: rule})
		c := store.Check{Rule: rule, Key: "k", Cost: 1}
		if name == "hot" {
			s.hot = c
		} else {
			s.full = c
		}
	}
	s.one, s.two = New(s.server, time.Second), New(s.server, time.Second)
	return s
}

// settle waits for what is under way beside requests.
func (s *stand) settle() { time.Sleep(5 * time.Millisecond) }

// calls is how many calls the server has got.
func (s *stand) calls() int {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	return s.server.calls
}

// lose has the server lose all messages, or none.
func (s *stand) lose(all bool) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.loses = all
}

// ask makes requests at a layer, and returns how many pass.
func (s *stand) ask(l *Layer, n int, checks ...store.Check) (passed int) {
	s.Helper()
	for range n {
		d := make([]algorithms.Decision, len(checks))
		if err := l.Take(context.Background(), checks, d); err == nil && layer.Pass(checks, d) {
			passed++
		}
	}
	return passed
}

// used is what the server has charged.
func (s *stand) used(c store.Check) int64 {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	return s.server.zone(c.Rule).state[1]
}

func (s *stand) held(l *Layer) int64 {
	units, _ := l.table.Held(s.hot.Rule, "k")
	return units
}

// warm has a layer hold something of the hot key.
func (s *stand) warm(l *Layer) {
	s.Helper()
	for i := 0; s.held(l) < 5; i++ {
		if time.Sleep(time.Millisecond); s.ask(l, 1, s.hot) != 1 || i > 100 {
			s.Fatalf("%d are held after %d requests", s.held(l), i)
		}
	}
}

func (s *stand) want(what string, got, want any) {
	s.Helper()
	if got != want {
		s.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestCases: what each feature does with units that are charged ahead. Each is a test of its name.
func TestCases(t *testing.T) {
	for name, test := range map[string]func(s *stand){
		"keys that come rarely": func(s *stand) { // each request is a call, and nothing is held
			before, c := s.calls(), s.hot
			for i := range 50 {
				c.Key = strconv.Itoa(i % 25)
				s.want("passed", s.ask(s.two, 1, c), 1)
				units, _ := s.two.table.Held(c.Rule, c.Key)
				s.want("held", units, int64(0))
			}
			s.want("calls", s.calls()-before, 50)
		},
		"several zones": func(s *stand) { // what is taken here is put back if another zone refuses
			s.ask(s.one, 2, s.full)
			before := s.held(s.one)
			s.want("passed", s.ask(s.one, 1, s.hot, s.full), 0)
			s.want("held", s.held(s.one), before)
		},
		"a cost above what is held": func(s *stand) {
			before, c := s.used(s.hot), s.hot
			c.Cost = s.held(s.one) + 3
			s.want("passed", s.ask(s.one, 1, c), 1)
			s.want("charged", s.used(s.hot)-before >= 3, true)
			c.Cost = 2000
			before = s.held(s.one)
			s.want("passed", s.ask(s.one, 1, c), 0)
			s.want("held", s.held(s.one), before)
		},
		"a cost of 0 asks": func(s *stand) {
			before, c := s.calls(), s.hot
			c.Cost = 0
			s.ask(s.one, 1, c)
			s.want("calls", s.calls()-before, 1)
		},
		"a peek asks, and adds what is held": func(s *stand) {
			before, c := s.held(s.one), s.hot
			c.Peek = true
			d := make([]algorithms.Decision, 1)
			s.want("error", s.one.Take(context.Background(), []store.Check{c}, d), error(nil))
			s.want("remaining", d[0].Remaining, 1000-s.used(s.hot)+before)
			s.want("held", s.held(s.one), before)
		},
		"an independent check is not put back": func(s *stand) {
			s.ask(s.one, 2, s.full)
			before, c := s.held(s.one), s.hot
			c.Independent = true
			s.ask(s.one, 1, c, s.full)
			s.want("held", s.held(s.one), before-1)
		},
		"other rules of a key": func(s *stand) { // this process gives back what it holds, others when it ends
			s.warm(s.two)
			before := s.used(s.hot) - s.held(s.one)
			s.one.Forget(s.hot.Rule, "k")
			s.want("held", s.held(s.one), int64(0))
			s.sweep(s.one)
			s.want("charged", s.used(s.hot), before)
			s.want("held by another one", s.held(s.two) > 0, true)
			time.Sleep(s.hot.Rule.Hold())
			s.sweep(s.two)
			s.want("held by another one after its end", s.held(s.two), int64(0))
		},
		"a zone with bans refuses nothing here": func(s *stand) {
			c := s.hot
			c.Cost, c.KeyRules = 2000, &store.KeyRules{Ban: &store.Ban{For: time.Hour, After: 3, Within: time.Hour}}
			before := s.calls()
			s.ask(s.one, 3, c)
			s.want("calls", s.calls()-before, 3)
		},
		"a refusal is remembered for a moment": func(s *stand) {
			c := s.hot
			c.Cost = 2000
			s.ask(s.one, 1, c) // which takes what is held and puts it back, so it is not remembered
			c.Cost, s.one = 1, s.two
			s.fill()
			before := s.calls()
			s.want("passed", s.ask(s.two, 50, s.hot), 0)
			s.want("calls", s.calls()-before < 5, true)
			before = s.calls()
			s.want("passed beside another zone", s.ask(s.two, 1, s.hot, s.full), 0)
			s.want("calls for another zone", s.calls(), before)
		},
		"another zone refuses after the hold has ended": func(s *stand) { // what was taken of it goes to the store
			s.ask(s.one, 2, s.full)
			s.server.trip = s.hot.Rule.Hold() + time.Second
			before := s.used(s.hot)
			s.want("passed", s.ask(s.one, 1, s.hot, s.full), 0)
			time.Sleep(s.server.trip)
			s.want("charged", s.used(s.hot), before-1)
		},
		"a limit that is lowered": func(s *stand) { // the new one finds no hold, and the old one is returned
			lower := hour
			lower.Events = 10
			rule, err := store.NewRule("hot", algorithms.FixedWindow{}, lower, 0)
			s.want("error", err, error(nil))
			units, _ := s.one.table.Held(rule, "k")
			s.want("held under the new limit", units, int64(0))
			time.Sleep(s.hot.Rule.Hold())
			before := s.used(s.hot) - s.held(s.one)
			s.sweep(s.one)
			s.want("charged", s.used(s.hot), before)
		},
		"a late cost": func(s *stand) { // is paid by what is held, and the rest is sent
			held, used := s.held(s.one), s.used(s.hot)
			a := store.Adjustment{Check: s.hot, At: time.Now().UnixMicro(), Turn: time.Now().UnixMicro(), Delta: held + 4}
			s.one.Adjust(a)
			s.settle()
			s.want("held", s.held(s.one), int64(0))
			s.want("charged", s.used(s.hot), used+4)
		},
		"a refund of a unit": func(s *stand) { // goes back to its batch, and to the store when that has ended
			d := make([]algorithms.Decision, 1)
			held, used := s.held(s.one), s.used(s.hot)
			s.want("error", s.one.Take(context.Background(), []store.Check{s.hot}, d), error(nil))
			s.one.Adjust(store.GiveBack(&s.hot, &d[0]))
			s.want("held", s.held(s.one), held)
			s.want("error", s.one.Take(context.Background(), []store.Check{s.hot}, d), error(nil))
			time.Sleep(s.hot.Rule.Hold())
			s.one.Adjust(store.GiveBack(&s.hot, &d[0]))
			s.settle()
			s.want("charged", s.used(s.hot), used-1)
		},
		"a reply that is lost": func(s *stand) { // nothing is asked for again, and what was charged counts
			s.spendAll()
			s.lose(true)
			s.want("passed", s.ask(s.one, 1, s.hot), 0)
			s.lose(false)
			s.want("passed", s.ask(s.one, 1, s.hot), 1)
		},
		"the store is down": func(s *stand) { // what is held is spent
			s.lose(true)
			held := s.held(s.one)
			s.want("passed", s.ask(s.one, 40, s.hot), int(held))
		},
		"closing gives everything back": func(s *stand) {
			spent := s.used(s.hot) - s.held(s.one)
			quit := make(chan struct{})
			close(quit)
			s.one.Tend(quit)
			s.one.Wait()
			s.settle()
			s.want("charged", s.used(s.hot), spent)
		},
		"a machine that was suspended": func(s *stand) { // the wall clock has gained on the monotonic one
			s.one.gap.Add(int64(s.hot.Rule.Hold()))
			before := s.calls()
			s.ask(s.one, 1, s.hot)
			s.want("calls", s.calls()-before, 1)
		},
		"a hold begins before its call is sent": func(s *stand) {
			s.server.trip = 100 * time.Millisecond
			units, began, end := int64(0), time.Duration(0), time.Duration(0)
			for n := 0; units == 0 && n < 20; n++ {
				began = s.two.now()
				s.ask(s.two, 1, s.hot)
				units, end = s.two.table.Held(s.hot.Rule, "k")
			}
			s.want("held", units > 0, true)
			s.want("until its end", end < began+s.hot.Rule.Hold(), true)
			time.Sleep(time.Second) // until nothing is under way
		},
		"what remains": func(s *stand) { // is of the limit, without what is held
			d := make([]algorithms.Decision, 1)
			spent := s.used(s.hot) - s.held(s.one)
			s.want("error", s.one.Take(context.Background(), []store.Check{s.hot}, d), error(nil))
			s.want("remaining", d[0].Remaining, 1000-spent-1)
			s.want("quota", d[0].Quota, int64(1000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStand(t, hour)
				s.warm(s.one)
				s.settle()
				test(s)
				s.settle()
			})
		})
	}
}

// sweep gives back what has ended.
func (s *stand) sweep(l *Layer) {
	l.below.Adjust(l.table.Sweep(l.now(), false)...)
	s.settle()
}

// spendAll spends what the first layer holds.
func (s *stand) spendAll() {
	for s.held(s.one) > 0 {
		h := s.hot
		h.Cost = s.held(s.one)
		s.ask(s.one, 1, h)
		s.settle()
		if s.lose(true); s.held(s.one) > 0 {
			s.ask(s.one, int(s.held(s.one)), s.hot)
		}
		s.lose(false)
	}
}

// fill uses up the limit.
func (s *stand) fill() {
	for s.ask(s.two, 1, s.hot) > 0 {
		time.Sleep(time.Millisecond)
	}
}
