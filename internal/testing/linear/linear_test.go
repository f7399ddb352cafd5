package linear

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const start = 1_800_000_000_000_000

// story is a history that the model tells, one operation after the other: operation n lasts from 10n
// to 10n+5.
type story struct {
	rule  *store.Rule
	state *state
	all   []porcupine.Operation
}

func newStory(t *testing.T) *story {
	t.Helper()
	a, _ := algorithms.Get("fixed_window")
	rule, err := store.NewRule("zone", a, algorithms.Limit{Events: 3, Window: 24 * time.Hour}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return &story{rule: rule, state: &state{now: start}}
}

// take adds requests of cost 1.
func (s *story) take(n int) *story {
	for range n {
		in := &input{kind: take, zones: []int{0}, checks: []store.Check{{Rule: s.rule, Key: "key", Cost: 1}}}
		out := &output{decisions: s.state.take(in)}
		call := int64(10 * len(s.all))
		s.all = append(s.all, porcupine.Operation{ClientId: len(s.all), Input: in, Output: out, Call: call, Return: call + 5})
	}
	return s
}

// wait sets the time.
func (s *story) wait(d time.Duration) *story {
	next := *s.state
	next.now += d.Microseconds()
	s.state = &next
	call := int64(10 * len(s.all))
	s.all = append(s.all, porcupine.Operation{Input: &input{kind: setTime, now: next.now}, Output: &output{}, Call: call, Return: call + 5})
	return s
}

// right reports whether the history has an order, by the store's own clock or not.
func (s *story) right(t *testing.T, own bool) bool {
	t.Helper()
	return hasOrder(t, "story", own, start, s.all)
}

// together makes operations overlap.
func (s *story) together(operations ...int) {
	for _, i := range operations {
		s.all[i].Call, s.all[i].Return = s.all[operations[0]].Call, s.all[operations[len(operations)-1]].Return
	}
}

// swap exchanges the answers of two operations.
func (s *story) swap(i, j int) { s.all[i].Output, s.all[j].Output = s.all[j].Output, s.all[i].Output }

// forget drops an operation, as if nobody had asked.
func (s *story) forget(i int) porcupine.Operation {
	gone := s.all[i]
	s.all = append(s.all[:i:i], s.all[i+1:]...)
	return gone
}

// TestHistories: a right history is accepted, and each kind of wrong answer is found.
func TestHistories(t *testing.T) {
	for _, c := range []struct {
		name  string
		forge func(s *story)
		right bool
	}{
		{"as it was", func(*story) {}, true},
		{"the last of the quota is granted twice", func(s *story) {
			s.together(2, 3)
			s.all[3].Output = s.all[2].Output
		}, false},
		{"a charge is lost", func(s *story) { s.forget(1) }, false},
		{"a charge whose answer was lost", func(s *story) {
			gone := s.forget(1)
			gone.Return, gone.Output = never, &output{lost: true}
			s.all = append(s.all, gone)
		}, true},
		{"an answer was lost that came too late to explain the others", func(s *story) {
			gone := s.forget(1)
			gone.Call, gone.Return, gone.Output = 10*int64(len(s.all)+2), never, &output{lost: true}
			s.all = append(s.all, gone)
		}, false},
		{"two charges for one answer that was lost", func(s *story) {
			s.forget(1)
			gone := s.forget(1)
			gone.Return, gone.Output = never, &output{lost: true}
			s.all = append(s.all, gone)
		}, false},
		{"answers in another order than requests", func(s *story) { s.swap(0, 1) }, false},
		{"the same, of requests at once", func(s *story) { s.swap(0, 1); s.together(0, 1) }, true},
		{"a refusal while something is left", func(s *story) { s.swap(2, 3) }, false},
		{"a wait that is wrong by a microsecond", func(s *story) {
			d := s.all[3].Output.(*output).decisions[0]
			d.RetryAfter++
			s.all[3].Output = &output{decisions: []algorithms.Decision{d}}
		}, false},
		{"an answer of another time", func(s *story) { s.swap(0, 6) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory(t).take(5).wait(24 * time.Hour).take(5)
			c.forge(s)
			if s.right(t, false) != c.right {
				t.Errorf("accepted: %v, want %v", !c.right, c.right)
			}
		})
	}
}

// TestOwnTime: by the store's own clock, the time that answers tell never goes back.
func TestOwnTime(t *testing.T) {
	s := newStory(t).take(1).wait(time.Second).take(1)
	s.forget(1)
	if !s.right(t, true) {
		t.Error("a second later is wrong")
	}
	s = newStory(t).take(1).wait(-time.Second).take(1)
	s.forget(1)
	if s.right(t, true) {
		t.Error("a second earlier is right")
	}
}

// forgetful is a store that loses one charge in many, and does not say so.
type forgetful struct {
	store.Store
	taken atomic.Int64
}

func (f *forgetful) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	if f.taken.Add(1)%200 == 0 {
		for i := range checks {
			checks[i].Peek = true
		}
		defer func() {
			for i := range checks {
				checks[i].Peek = false
				if decisions[i].Allowed {
					decisions[i].Remaining = max(0, decisions[i].Remaining-checks[i].Cost)
				}
			}
		}()
	}
	return f.Store.Take(ctx, checks, decisions)
}

// TestForgetful: a store that loses charges under load is found out.
func TestForgetful(t *testing.T) {
	for _, forgets := range []bool{false, true} {
		var now atomic.Int64
		m, err := memorystore.New(memorystore.Options{Now: now.Load})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		f := &Fleet{
			Stores: []store.Store{m}, Start: start, Operations: 4000, Clients: 8, Seed: 1,
			SetTime: func(at int64) error { now.Store(at); return nil },
		}
		if forgets {
			f.Stores = []store.Store{&forgetful{Store: m}}
		}
		h := f.Run(t)
		if wrong := h.wrong(t); (len(wrong) > 0) != forgets {
			t.Errorf("%d of %d histories are wrong, with a store that forgets: %v", len(wrong), len(h.keys), forgets)
		}
	}
}
