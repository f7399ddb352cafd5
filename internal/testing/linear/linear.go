// Package linear checks that stores are linearizable: that all of their answers are those of one
// store that carries out one operation after the other, each at some moment between its call and
// its return. It records what many clients ask and hear, and has porcupine look for such an order.
//
// Keys do not affect each other, so each key has a history of its own.
package linear

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Fleet is stores that share their states, and the clients that ask them.
type Fleet struct {
	// Stores are what the clients ask.
	Stores []store.Store

	// SetTime sets the clock of the stores, in microseconds since 1970. If it is nil, they have
	// a clock of their own. Then the clients adjust no charge, because an adjustment does not
	// tell its time, and no answer may be lost.
	SetTime func(now int64) error

	// Start is the first time.
	Start int64

	// Operations is how many there are, and Clients how many ask each store at once.
	Operations, Clients int

	// Seed is that of what the clients ask.
	Seed uint64
}

const (
	// keysAtOnce is how many keys are in use at a time.
	keysAtOnce = 48

	// longest is the length of a history. A key then gives way to a new one.
	longest = 150

	// mostVague is how many operations of a key may be vague at a time: without an answer, or
	// adjustments, whose answers tell little. Each of them can be placed nearly anywhere, and so
	// doubles the search. With as many, a key gives way.
	mostVague = 3

	// mostAtOnce is how many clients may ask for a key at a time. Each of them multiplies the search
	// by as many operations as come while it waits, which are many where the machine is busy.
	mostAtOnce = 5

	// tickEvery is how many operations there are for each one that sets the time.
	tickEvery = 150
)

// key is one client of the stores, with all that was asked of it.
type key struct {
	name  string
	zones []zoneRule

	mu      sync.Mutex
	asked   int
	asking  int // how many clients wait for an answer
	vague   int
	until   int64 // when it gave way to another key
	history []*record
}

// record is an operation of a history.
type record struct {
	client       int
	call, answer int64 // answer is never while there is none
	in           *input
	out          *output
}

// never is later than any answer.
const never = 1 << 62

// History is what was asked and answered.
type History struct {
	*Fleet
	t        testing.TB
	profiles [][]zoneRule
	begun    time.Time

	next          atomic.Int64 // operation
	lost, refused atomic.Int64

	mu    sync.Mutex
	keys  []*key
	inUse [keysAtOnce]*key

	ticking sync.Mutex
	now     int64
	ticks   []*record
}

// Run has the clients ask until enough was asked, and returns what they heard.
func (f *Fleet) Run(t testing.TB) *History {
	t.Helper()
	t.Logf("seed %d", f.Seed)
	h := &History{Fleet: f, t: t, profiles: profiles(t), begun: time.Now(), now: f.Start}
	if f.SetTime != nil {
		if err := f.SetTime(f.Start); err != nil {
			t.Fatal(err)
		}
	}
	for i := range h.inUse {
		h.inUse[i] = h.newKey()
	}
	var clients sync.WaitGroup
	for i := range f.Clients * len(f.Stores) {
		c := &client{History: h, id: i, store: f.Stores[i%len(f.Stores)], random: rand.New(rand.NewPCG(f.Seed, uint64(i)))}
		clients.Go(c.run)
	}
	clients.Wait()
	for _, k := range h.inUse {
		k.until = h.since()
	}
	t.Logf("%d operations on %d keys: %d refused, %d without an answer, and the time was set %d times",
		f.Operations, len(h.keys), h.refused.Load(), h.lost.Load(), len(h.ticks))
	return h
}

// newKey begins the history of another key. The lock is held, or no other goroutine has the history yet.
func (h *History) newKey() *key {
	k := &key{name: fmt.Sprint("key", len(h.keys)), zones: h.profiles[len(h.keys)%len(h.profiles)]}
	h.keys = append(h.keys, k)
	return k
}

// pick chooses a key that is in use, for one operation. The client leaves it afterwards.
func (c *client) pick() *key {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		i := c.random.IntN(keysAtOnce)
		k := c.inUse[i]
		switch entered, done := k.enter(c.since()); {
		case entered:
			return k
		case done:
			c.inUse[i] = c.newKey()
		}
	}
}

// enter counts one more client that asks for the key, unless there are enough. It reports whether the
// key is done instead, which then gives way.
func (k *key) enter(now int64) (entered, done bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.asked > longest, k.vague >= mostVague:
		k.until = now
		return false, true
	case k.asking >= mostAtOnce:
		return false, false
	}
	k.asked++
	k.asking++
	return true, false
}

func (k *key) leave() {
	k.mu.Lock()
	k.asking--
	k.mu.Unlock()
}

// tick sets the time: mostly a little later, and now and then earlier.
func (c *client) tick() {
	c.ticking.Lock()
	defer c.ticking.Unlock()
	switch c.random.IntN(20) {
	case 0:
		if c.now -= c.random.Int64N(300_000); c.Clients == 1 && c.random.IntN(3) == 0 { // so quick that no store renews a lease
			c.now -= c.random.Int64N(600_000_000)
		}
	case 1, 2:
		c.now += c.random.Int64N(2_000_000)
	case 3, 4, 5:
		c.now++
	default:
		c.now += c.random.Int64N(70_000)
	}
	r := &record{client: c.id, call: c.since(), in: &input{kind: setTime, now: c.now}, out: &output{}}
	if err := c.SetTime(c.now); err != nil {
		c.t.Errorf("setting the time: %v", err)
	}
	r.answer = c.since()
	c.ticks = append(c.ticks, r)
}

func (h *History) since() int64 { return int64(time.Since(h.begun)) }

// operations returns the history of a key in the checker's form, with the time that was set
// meanwhile, and the time at its beginning. What was answered after its end is as good as lost,
// because nothing that was asked then says what came of it.
func (h *History) operations(k *key) (start int64, all []porcupine.Operation) {
	k.mu.Lock()
	defer k.mu.Unlock()
	end := k.end()
	if h.SetTime == nil {
		end = never // all answers are there, and without the answer nobody knows the time
	}
	first := end
	for _, r := range k.history {
		switch {
		case r.in == nil || r.call > end: // it was not carried out, or too late
		case r.answer <= end:
			first = min(first, r.call)
			all = append(all, r.operation(r.answer, r.out))
		case !r.in.changesNothing():
			first = min(first, r.call)
			all = append(all, r.operation(never, &output{lost: true}))
		}
	}
	start = h.Start
	for _, tick := range h.ticks {
		switch {
		case tick.answer < first:
			start = tick.in.now
		case tick.call <= end:
			all = append(all, tick.operation(tick.answer, tick.out))
		}
	}
	return start, all
}

// end returns when the key gave way, or when too many of its operations were vague, which happens
// when many answers are lost or late at once. The lock is held.
func (k *key) end() int64 {
	vague := slices.DeleteFunc(slices.Clone(k.history), func(r *record) bool {
		return r.in == nil || r.in.changesNothing() || r.in.kind != adjust && !r.out.lost
	})
	end := k.until
	for _, r := range vague {
		atOnce := 0
		for _, other := range vague {
			if other.call <= r.call && r.call < other.answer {
				atOnce++
			}
		}
		if atOnce > mostVague+2 {
			end = min(end, r.call-1)
		}
	}
	return end
}

// changesNothing reports whether a lost operation would change nothing if it were carried out.
func (in *input) changesNothing() bool {
	if in.kind != take {
		return false
	}
	for i := range in.checks {
		if c := &in.checks[i]; !c.Peek && (c.Cost > 0 || c.KeyRules != nil) {
			return false
		}
	}
	return true
}

func (r *record) operation(answer int64, out *output) porcupine.Operation {
	return porcupine.Operation{ClientId: r.client, Input: r.in, Call: r.call, Output: out, Return: answer}
}

// Check fails the test if the answers to a key are not those of one store, and shows that history.
func (h *History) Check(t testing.TB) {
	t.Helper()
	for _, k := range h.wrong(t) {
		_, all := h.operations(k)
		t.Errorf("%s: no order of %d operations explains the answers:", k.name, len(all))
		for _, o := range all {
			t.Logf("%d to %d, client %d: %+v, %+v", o.Call, o.Return, o.ClientId, o.Input, o.Output)
		}
	}
}

// wrong returns the keys whose answers have no order.
func (h *History) wrong(t testing.TB) (wrong []*key) {
	var mu sync.Mutex
	var checked atomic.Int64
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := next.Add(1); i <= int64(len(h.keys)); i = next.Add(1) {
				k := h.keys[i-1]
				start, all := h.operations(k)
				for i := range all {
					if !all[i].Output.(*output).lost && all[i].Input.(*input).kind != setTime {
						checked.Add(1)
					}
				}
				if !hasOrder(t, k.name, h.SetTime == nil, start, all) {
					mu.Lock()
					wrong = append(wrong, k)
					mu.Unlock()
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d answers checked", checked.Load())
	return wrong
}

// hasOrder reports whether a history has an order in which a new key gives all of its answers, from a start on. The test
// fails if the search does not end: histories must be so small that it does.
func hasOrder(t testing.TB, name string, ownTime bool, start int64, history []porcupine.Operation) bool {
	t.Helper()
	model := porcupine.Model{
		Init:  func() any { return &state{now: start} },
		Step:  func(s, in, out any) (bool, any) { return s.(*state).step(in.(*input), out.(*output), ownTime) },
		Equal: func(a, b any) bool { return a.(*state).equal(b.(*state)) },
		Hash:  func(s any) uint64 { return s.(*state).hash() },
	}
	result := porcupine.CheckOperationsTimeout(model, history, patient.Patience)
	if result == porcupine.Unknown {
		t.Errorf("%s: no decision on %d operations in %v", name, len(history), patient.Patience)
	}
	return result != porcupine.Illegal
}
