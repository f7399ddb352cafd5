package trouble_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
)

// TestRandomTrouble: fleets of two to four instances, with zones of random kinds, meet random faults one after
// the other, beside random requests whose costs and refunds come late. No more passes than docs/failure.md
// allows for these faults, and no late cost and no refund is lost that it does not name.
//
// "make test" runs a few short sequences. TROUBLE=20m runs new ones for so long, and TROUBLE_SEED=7 one again.
func TestRandomTrouble(t *testing.T) {
	t.Parallel()
	if text := os.Getenv("TROUBLE_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(weather(t, seed, 8))
		return
	}
	fresh := uint64(time.Now().UnixMicro())
	limit, err := time.ParseDuration(cmp.Or(os.Getenv("TROUBLE"), "0s"))
	if err != nil {
		t.Fatal(err)
	}
	if deep.Run() && limit == 0 {
		limit = time.Minute
	}
	all := newTotals()
	began := time.Now()
	t.Run("sequences", func(t *testing.T) {
		if limit == 0 {
			for _, seed := range []uint64{1, 2, 3, fresh} {
				t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { t.Parallel(); all.add(weather(t, seed, 2)) })
			}
			return
		}
		var next atomic.Uint64
		next.Store(fresh)
		for lane := range 3 {
			t.Run(fmt.Sprint("lane ", lane+1), func(t *testing.T) {
				t.Parallel()
				for time.Since(began) < limit && !t.Failed() {
					seed := next.Add(1)
					t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { all.add(weather(t, seed, 8)) })
				}
			})
		}
	})
	t.Logf("from seed %d, in %v: %v", fresh, time.Since(began).Round(time.Second), all)
}

// weather runs the sequence of a seed: so many faults, drawn at random.
func weather(t *testing.T, seed uint64, rounds int) *totals {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	instances := 2 + random.IntN(3)
	var timeout time.Duration
	if random.IntN(3) == 0 {
		timeout = time.Second // as a fault needs that is a silence
	}
	s := &storm{
		fleet: newFleet(t, instances, timeout, random.IntN(2) == 0), timed: timeout > 0, random: random,
		accounts: make(map[*cell][]*account), totals: newTotals(), forgotten: -1, moved: -1,
	}
	t.Cleanup(func() {
		s.releaseAll()
		if t.Failed() {
			t.Logf("TROUBLE_SEED=%d, %d instances:\n%s", seed, instances, strings.Join(s.events, "\n"))
		}
	})
	s.totals.sequences = 1
	s.warm()
	all := kindsOf(int64(instances))
	for n := range 8 {
		k := all[random.IntN(len(all))]
		if strings.Contains(k.json, "_bucket") { // which keeps a debt of what comes back in a day
			k.json = strings.Replace(k.json, window, `"window": "24h"`, 1)
		}
		s.add(&k, policies[random.IntN(len(policies))], n)
	}
	var possible []*fault
	for _, f := range faults(t) {
		if f.timeout == 0 || s.timed {
			possible = append(possible, f)
		}
	}
	named := func(f *fault) int { return strings.Index(f.name, "NOPERM") }
	rest := slices.IndexFunc(possible, func(f *fault) bool { return named(f) == 0 })
	for round := range rounds {
		n := random.IntN(rest + 3)
		if n >= rest { // there are many rights
			n = rest + random.IntN(len(possible)-rest)
		}
		s.meets(round, possible[n])
		if t.Failed() {
			return s.totals
		}
	}
	s.leave()
	return s.totals
}

// stage is what a fault is at.
type stage int

const (
	quiet   stage = iota // Redis works, and all instances know that
	turning              // the fault begins
	steady
	mending // it ends, or has ended, and instances may not know that yet
)

// moment is a time in which the stage stays the same. Later ones have greater numbers.
type moment struct {
	number int
	stage  stage
	fault  *fault
}

// storm is a fleet under random faults.
type storm struct {
	*fleet
	timed  bool // answers may be too late at any time
	random *rand.Rand
	events []string
	steps  atomic.Int64

	turn sync.RWMutex
	now  moment

	mu       sync.Mutex
	accounts map[*cell][]*account
	clients  int    // that have been named so far
	lost     uint64 // how many changes the stores have given up so far

	hidden           int64 // how many changes are lost that no comparison has found missing
	forgets          int   // of Redis
	forgotten, moved int   // the numbers of the moments in which Redis has forgotten at last, and another was the master

	dirty  bool // a fault so far was not harmless
	forgot bool // a fault so far may have made Redis forget something
	totals *totals
}

func (s *storm) add(k *kind, policy string, n int) {
	c := s.newCell(&fault{name: fmt.Sprint(n)}, k, policy)
	c.tallies = nil
	if a := c.send(0, "warm", "", c.holding()); a.by != byRedis || !a.passed {
		s.t.Fatalf("%s: before the fault: %+v", c.zone, a)
	}
	c.rule = s.stores[0].Rule(c.zone)
	s.event("zone %s", c.zone)
}

func (s *storm) event(format string, args ...any) {
	s.events = append(s.events, fmt.Sprintf(format, args...))
}

// becomes begins a moment.
func (s *storm) becomes(stage stage, fault *fault) {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.now = moment{s.now.number + 1, stage, fault}
}

// meets has requests meet a fault, and compares the accounts afterwards.
func (s *storm) meets(round int, fault *fault) {
	s.t.Helper()
	auditor := s.auditor()
	s.invite(auditor)
	s.totals.faults[fault.name]++
	stop := s.traffic(round)
	s.await(20 + s.random.IntN(100))
	before := s.steps.Load()
	s.event("%d: %s", round+1, fault.name)
	s.becomes(turning, fault)
	s.mu.Lock()
	s.dirty = s.dirty || fault.class != harmless
	s.mu.Unlock()
	old := s.redis
	fault.begin(s.fleet)
	if fault.class == unanswered || fault.class == forgotten {
		s.trip()
	}
	s.happened(fault)
	s.becomes(steady, fault)
	s.await(10 + s.random.IntN(200))
	s.becomes(mending, fault)
	fault.end(s.fleet)
	if old != s.redis {
		old.Kill() // or the new master would have a replica, and connections that lead nowhere might last
	}
	s.recovered()
	s.becomes(quiet, nil)
	s.event("%d: %s is over after %d requests", round+1, fault.name, s.steps.Load()-before)
	s.await(10 + s.random.IntN(50))
	stop()
	s.recovered()
	s.audit(s.auditor())
}

// await waits for requests.
func (s *storm) await(requests int) {
	s.t.Helper()
	end := s.steps.Load() + int64(requests)
	patient.Until(s.t, "requests", func() bool { return s.steps.Load() >= end })
}

// invite names new clients, and gives those of overrides their rules.
func (s *storm) invite(auditor *redisstore.Store) {
	s.t.Helper()
	for _, c := range s.cells {
		if c.special == "override" {
			c.override(auditor)
			for _, client := range []string{"overridden", "exempt", "barred"} {
				s.meet(auditor, c, client)
			}
		}
		for n := range 2 {
			s.meet(auditor, c, fmt.Sprint("client ", s.clients+n+1))
		}
	}
	s.clients += 2
}

// meet opens the account of a client, or gives it the room that its rule says.
func (s *storm) meet(auditor *redisstore.Store, c *cell, client string) {
	var a *account
	if i := slices.IndexFunc(s.accounts[c], func(a *account) bool { return a.client == client }); i >= 0 {
		a = s.accounts[c][i]
	} else {
		a = &account{cell: c, client: client, share: make([]int64, len(s.stores))}
		s.accounts[c] = append(s.accounts[c], a)
		s.totals.limits += c.limit
	}
	if counted(client) {
		var err error
		if a.sum, err = c.used(auditor, client); err != nil { // maybe of another state than before
			s.t.Errorf("%s, %s: %v", c.zone, client, err)
		}
	}
	a.ruled, a.seen = true, a.sum > 0
	a.room, a.passed, a.back, a.extra = max(c.allowed(client)-a.sum, 0), 0, 0, 0
}

// leave ends all requests, and compares the accounts at last.
func (s *storm) leave() {
	s.t.Helper()
	s.releaseAll()
	s.recovered()
	s.end()
	s.event("all stores are closed")
	s.audit(s.auditor())
}

func (s *storm) releaseAll() {
	for _, c := range s.cells {
		for _, a := range s.accounts[c] {
			for _, h := range a.held {
				s.release(h, s.random)
			}
			a.held = nil
		}
	}
}

// totals is what happened in all.
type totals struct {
	mu                                sync.Mutex
	sequences, requests               int
	passed                            map[by]int64
	limits, corrections, lost, audits int64
	faults                            map[string]int
}

func newTotals() *totals {
	return &totals{faults: make(map[string]int), passed: make(map[by]int64)}
}

func (y *totals) add(o *totals) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.sequences += o.sequences
	y.requests += o.requests
	y.limits += o.limits
	y.corrections += o.corrections
	y.lost += o.lost
	y.audits += o.audits
	for name, n := range o.faults {
		y.faults[name] += n
	}
	for by, n := range o.passed {
		y.passed[by] += n
	}
}

// String implements [fmt.Stringer].
func (y *totals) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d sequences, %d requests; cost passed by Redis %d, by shares %d, by nobody %d; limits of all clients %d; %d late costs and refunds, %d lost in doubt; %d accounts compared; faults:",
		y.sequences, y.requests, y.passed[byRedis], y.passed[byShare], y.passed[byNobody], y.limits, y.corrections, y.lost, y.audits)
	for _, name := range slices.Sorted(maps.Keys(y.faults)) {
		fmt.Fprintf(&text, " %s %d,", name, y.faults[name])
	}
	return strings.TrimSuffix(text.String(), ",")
}
