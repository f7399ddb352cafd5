package prepaid

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// server is a store of one key. It takes its time, and loses messages.
type server struct {
	mu    sync.Mutex
	rand  *rand.Rand
	trip  time.Duration
	lost  float64
	zones []*zone
	last  int64 // no two calls have the same microsecond
	calls int
}

type zone struct {
	rule     *store.Rule
	state    algorithms.State
	log      algorithms.Log
	admitted []admission
}

// admission is a request that was admitted between two times.
type admission struct {
	began, ended time.Duration
	cost         int64
}

var errLost = errors.New("lost")

func (s *server) draw() (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.rand.Float64() * float64(s.trip)), s.rand.Float64() < s.lost
}

func (s *server) zone(rule *store.Rule) *zone {
	return s.zones[slices.IndexFunc(s.zones, func(z *zone) bool { return z.rule == rule })]
}

// lock waits until the time is another one than in the call before.
func (s *server) lock() (now int64) {
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
	there, lost := s.draw()
	back, lostBack := s.draw()
	if time.Sleep(there); lost {
		time.Sleep(2 * s.trip)
		return errLost
	}
	now := s.lock()
	s.calls++
	pass, before := true, make([]zone, len(checks))
	for i := range checks {
		z := s.zone(checks[i].Rule)
		before[i] = zone{state: z.state, log: *z.log.Clone()}
		decisions[i] = z.decide(now, checks[i].Cost, checks[i].Ahead)
		pass = pass && decisions[i].Allowed
	}
	for i := range checks {
		if z := s.zone(checks[i].Rule); !pass {
			z.state, z.log = before[i].state, before[i].log
			if decisions[i].Allowed {
				decisions[i] = z.decide(now, 0, 0)
			}
		}
	}
	s.mu.Unlock()
	if time.Sleep(back); lostBack {
		time.Sleep(2 * s.trip)
		return errLost
	}
	return nil
}

func (z *zone) decide(now, cost, ahead int64) (d algorithms.Decision) {
	p, lasts := z.rule.At(now).Params, int64(0)
	if a, ok := z.rule.Algorithm().(algorithms.SlidingWindowLog); ok {
		if d = a.Decide(&z.log, p, now, cost); d.Allowed {
			if d.Units, lasts = a.Record(&z.log, p, now, cost, ahead); cost > 0 {
				d.Ahead = time.Duration(lasts) * time.Microsecond
			}
		}
	} else {
		a := z.rule.Algorithm().(algorithms.Counter)
		if z.state, d = a.Take(z.state, p, now, cost); d.Allowed && ahead > 0 {
			z.state, d.Units, lasts = a.Ahead(z.state, p, now, cost, ahead)
		}
	}
	d.At, d.Lasts = now, time.Duration(lasts)*time.Microsecond
	return d
}

func (s *server) Adjust(adjustments ...store.Adjustment) {
	for _, a := range adjustments {
		go func() {
			there, lost := s.draw()
			if time.Sleep(there); lost {
				return
			}
			now := s.lock()
			defer s.mu.Unlock()
			z := s.zone(a.Rule)
			p := z.rule.At(now).Params
			if r, ok := a.Rule.Algorithm().(algorithms.Recorder); ok {
				r.Adjust(&z.log, p, now, a.At, a.Delta)
			} else {
				z.state = a.Rule.Algorithm().(algorithms.Counter).Adjust(z.state, p, now, a.At, a.Turn, a.Delta)
			}
		}()
	}
}

func (s *server) Forget(*store.Rule, string) {}

// TestNeverAboveTheLimit runs small fleets of layers, with clients that ask at once, calls that take long or are lost,
// refunds, and floods just before holds end.
func TestNeverAboveTheLimit(t *testing.T) {
	var spared, calls int
	for i := range deep.Steps(150, 6000) {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, rand.New(rand.NewPCG(deep.Seed(i), 1)))
			f.run()
			for _, l := range f.layers {
				spared += int(l.Spared.Load())
			}
			f.server.mu.Lock()
			calls += f.server.calls
			f.server.mu.Unlock()
			for _, z := range f.server.zones {
				if bad := z.above(); bad != "" {
					t.Errorf("seed %d: %s %+v, trip %v: %s", i, z.rule.Algorithm().Name(), z.rule.Limit(), f.server.trip, bad)
				}
			}
		})
	}
	if t.Logf("%d requests were spared, with %d calls", spared, calls); spared < calls/10 {
		t.Error("too few to find anything")
	}
}

// fleet is some layers that share a server.
type fleet struct {
	*rand.Rand
	server *server
	layers []*Layer
	mu     sync.Mutex // of what was admitted
	began  time.Time
}

func newFleet(t *testing.T, r *rand.Rand) *fleet {
	f := &fleet{Rand: r, began: time.Now()}
	f.server = &server{rand: rand.New(rand.NewPCG(r.Uint64(), 2)), lost: []float64{0, 0, 0.1}[r.IntN(3)]}
	for i := range 1 + r.IntN(2) {
		a := []algorithms.Algorithm{
			algorithms.TokenBucket{},
			algorithms.SlidingWindowLog{},
			algorithms.FixedWindow{},
			algorithms.LeakyBucket{},
			algorithms.SlidingWindowCounter{},
		}[r.IntN(5)]
		l := algorithms.Limit{Events: 5 + r.Int64N(120), Window: time.Duration(200+r.IntN(2000)) * time.Millisecond}
		if _, bucket := a.(algorithms.Lossy); bucket {
			l.Burst = l.Events/2 + 1 + r.Int64N(l.Events)
		}
		l.Hold = max(10*time.Millisecond, (l.Window / time.Duration(20+r.IntN(20))).Truncate(time.Microsecond))
		rule, err := store.NewRule(fmt.Sprint("z", i), a, l, 0)
		if err != nil || rule.Hold() == 0 {
			t.Fatal(rule, err)
		}
		f.server.zones = append(f.server.zones, &zone{rule: rule})
		f.server.trip = l.Hold / time.Duration(1+r.IntN(60))
	}
	for range 1 + r.IntN(3) {
		f.layers = append(f.layers, New(f.server, time.Second))
	}
	return f
}

// run has clients ask until all are done, and everything was given back.
func (f *fleet) run() {
	quit := make(chan struct{})
	for _, l := range f.layers {
		go l.Tend(quit)
	}
	var clients sync.WaitGroup
	for range 2 + f.IntN(6) {
		r, l := rand.New(rand.NewPCG(f.Uint64(), 3)), f.layers[f.IntN(len(f.layers))]
		clients.Go(func() {
			for range 20 + r.IntN(60) {
				f.act(l, r)
			}
		})
	}
	clients.Wait()
	close(quit)
	for _, l := range f.layers {
		l.Wait()
	}
	time.Sleep(time.Minute)
}

func (f *fleet) act(l *Layer, r *rand.Rand) {
	rule, n := f.server.zones[0].rule, 1
	switch r.IntN(8) {
	case 0:
		time.Sleep(time.Duration(r.Float64() * 3 * float64(rule.Hold())))
	case 1: // until just before what is held ends
		if units, end := l.table.Held(rule, "k"); units > 0 {
			time.Sleep(end - l.now() - time.Duration(r.IntN(3))*time.Microsecond)
		}
		n = 1 + r.IntN(30)
	case 2:
		n = 1 + r.IntN(20)
	default:
		time.Sleep(time.Duration(r.Float64() * float64(rule.Hold()) / 8))
	}
	for range n {
		f.request(l, r)
	}
}

// request asks in one or two zones. Some requests are given back, after about a hold.
func (f *fleet) request(l *Layer, r *rand.Rand) {
	zones, cost := f.server.zones, int64(1)
	if r.IntN(8) == 0 {
		cost = 1 + r.Int64N(4)
	}
	var checks []store.Check
	for _, i := range r.Perm(len(zones))[:1+r.IntN(len(zones))] {
		checks = append(checks, store.Check{Rule: zones[i].rule, Key: "k", Cost: cost})
	}
	decisions, began := make([]algorithms.Decision, len(checks)), time.Since(f.began)
	err := l.Take(context.Background(), checks, decisions)
	if err != nil || !layer.Pass(checks, decisions) {
		return
	}
	ended := time.Since(f.began)
	f.mu.Lock()
	of := make([]int, len(checks))
	for i := range checks {
		z := f.server.zone(checks[i].Rule)
		of[i] = len(z.admitted)
		z.admitted = append(z.admitted, admission{began, ended, cost})
	}
	f.mu.Unlock()
	if r.IntN(10) > 0 {
		return
	}
	time.Sleep(time.Duration(r.Float64() * float64(checks[0].Rule.Hold()) * 1.5))
	for i := range checks {
		l.Adjust(store.GiveBack(&checks[i], &decisions[i]))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range checks {
		f.server.zone(checks[i].Rule).admitted[of[i]].cost = 0
	}
}

// above reports what is above the limit: more that was admitted from one time to another than may be.
func (z *zone) above() string {
	byEnd := slices.SortedFunc(slices.Values(z.admitted), func(a, b admission) int { return int(a.ended - b.ended) })
	for _, first := range z.admitted {
		sum := int64(0)
		for _, last := range byEnd {
			if last.began < first.began {
				continue
			}
			if sum += last.cost; sum > z.most(first.began, last.ended) {
				return fmt.Sprintf("%d from %s to %s, at most %d", sum, first.began, last.ended, z.most(first.began, last.ended))
			}
		}
	}
	return ""
}

// most returns how much may be admitted from one time to another.
func (z *zone) most(from, to time.Duration) int64 {
	l, span := z.rule.Limit(), to-from
	switch z.rule.Algorithm().(type) {
	case algorithms.TokenBucket, algorithms.LeakyBucket:
		return l.Burst + int64(float64(span+2*time.Microsecond)*float64(l.Events)/float64(l.Window)+1e-9)
	case algorithms.SlidingWindowLog:
		return l.Events * (1 + int64((span+time.Microsecond)/l.Window))
	}
	epoch := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro() // of synctest
	length := l.Window.Microseconds()
	return l.Events * (1 + (epoch+to.Microseconds())/length - (epoch+from.Microseconds())/length)
}
