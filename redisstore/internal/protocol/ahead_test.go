package protocol

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestAhead: whatever requests share a call, a check or a script, the script charges ahead what the Go functions do, if
// all requests for a group pass, and one of them gets the units. The states that it keeps are those of Go.
func TestAhead(t *testing.T) {
	client, script := redistest.Start(t).Admin(), NewScript(nil)
	r := rand.New(rand.NewPCG(1, 2))
	granted := make(map[string]int64)
	for n := range 600 {
		b, keys := NewBatch(), make(map[string]*aheadKey)
		var requests []*Request
		for i := range 1 + r.IntN(3) {
			shape := make([]Op, 1+r.IntN(2))
			for j := range shape {
				rule := drawAheadRule(t, r)
				key := fmt.Sprint("{", n, "}", i, j)
				keys[key] = &aheadKey{rule: rule}
				shape[j] = Op{Rule: rule, Prepared: rule.At(0), Key: key, Cost: r.Int64N(3), Index: j}
				if r.IntN(6) == 0 {
					shape[j].KeyRules = &KeyRules{KeyRules: &store.KeyRules{Overrides: true}, Override: key + "override"}
				}
			}
			for range 1 + r.IntN(3) {
				request := new(Request)
				request.Ops = slices.Clone(shape)
				for j := range shape {
					if r.IntN(4) == 0 {
						request.Ops[j].Cost = r.Int64N(3) // then it is decided after the others
					}
					request.Ops[j].Ahead = []int64{0, r.Int64N(4), r.Int64N(MaxAhead)}[r.IntN(3)]
				}
				request.EndGroup()
				request.Expect(len(shape))
				requests = append(requests, request)
			}
		}
		for _, request := range requests {
			b.Add(request)
		}
		reply, err := client.Do(context.Background(), b.CallText(script)...).Text()
		must(t, err)
		must(t, b.Read(reply))
		seen := make(map[string]bool)
		for _, g := range b.groups {
			decideAlike(t, keys, seen, &g)
		}
		for key, k := range keys {
			granted[k.rule.Algorithm().Name()] += k.units
			kept := client.Get(context.Background(), key).Val()
			if k.log.Len() > 0 {
				kept = strings.Join(client.LRange(context.Background(), key, 0, -1).Val(), ", ")
			}
			if want := k.kept(); !strings.HasPrefix(kept, want) {
				t.Fatalf("%s %+v: redis keeps %q, want %q", k.rule.Algorithm().Name(), k.rule.Limit(), kept, want)
			}
		}
	}
	if len(granted) != 5 || slices.Contains(slices.Collect(maps.Values(granted)), 0) {
		t.Errorf("some algorithm has charged nothing ahead: %v", granted)
	}
}

// aheadKey is what a key has by the Go functions.
type aheadKey struct {
	rule    *store.Rule
	state   algorithms.State
	log     algorithms.Log
	charged bool
	units   int64
}

// decide decides a cost. The key afterwards is another one.
func (k aheadKey) decide(now, cost int64) (*aheadKey, bool) {
	var d algorithms.Decision
	p := k.rule.At(0).Params
	if a, ok := k.rule.Algorithm().(algorithms.Counter); ok {
		k.state, d = a.Take(k.state, p, now, cost)
		k.charged = k.charged || cost > 0
	} else if a := (algorithms.SlidingWindowLog{}); a.Decide(&k.log, p, now, cost).Allowed {
		d.Allowed = true // Record charges the cost
	}
	return &k, d.Allowed
}

// ahead charges a log, and all keys units ahead.
func (k *aheadKey) ahead(now, cost, want int64) (units int64, lasts time.Duration) {
	p, micros := k.rule.At(0).Params, int64(0)
	if a, ok := k.rule.Algorithm().(algorithms.Counter); ok {
		if want > 0 {
			k.state, units, micros = a.Ahead(k.state, p, now, cost, want)
		}
		k.charged = k.charged || units > 0
	} else {
		units, micros = algorithms.SlidingWindowLog{}.Record(&k.log, p, now, cost, want)
	}
	if k.units += units; units == 0 {
		return 0, 0
	}
	return units, time.Duration(micros) * time.Microsecond
}

// kept is what Redis keeps of the key, as far as the Go functions know it.
func (k *aheadKey) kept() string {
	var b []byte
	if k.log.Len() > 0 {
		return strconv.FormatInt(k.log.At(0), 10)
	}
	if !k.charged {
		return ""
	}
	for _, n := range k.state {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return string(b)
}

func drawAheadRule(t *testing.T, r *rand.Rand) *store.Rule {
	l := algorithms.Limit{Events: 1 + r.Int64N(1000), Window: time.Duration(1+r.IntN(5000)) * time.Millisecond}
	l.Hold = time.Duration(1+r.Int64N(l.Window.Microseconds()/2)) * time.Microsecond
	a := []algorithms.Algorithm{
		algorithms.TokenBucket{},
		algorithms.TokenBucket{},
		algorithms.LeakyBucket{},
		algorithms.FixedWindow{},
		algorithms.FixedWindow{},
		algorithms.SlidingWindowCounter{},
		algorithms.SlidingWindowLog{},
	}[r.IntN(7)]
	switch a.(type) {
	case algorithms.TokenBucket:
		l.Burst, l.Refill = 1+r.Int64N(2000), []string{"", algorithms.RefillInterval}[r.IntN(2)]
	case algorithms.FixedWindow:
		l.Align = []string{"", algorithms.AlignFirstRequest}[r.IntN(2)]
	}
	rule, err := store.NewRule("z", a, l, 0)
	must(t, err)
	return rule
}

// decideAlike has the Go functions decide a group for each of its requests, and compares what is charged ahead. A group
// with a key that was in one before gets nothing ahead.
func decideAlike(t *testing.T, keys map[string]*aheadKey, seen map[string]bool, g *group) {
	t.Helper()
	now, all, again := g.waiters[0].Decisions[0].At, int64(0), false
	for i := range g.ops {
		again, seen[g.ops[i].Key] = again || seen[g.ops[i].Key], true
	}
	for _, w := range g.waiters {
		pass, after := true, make([]*aheadKey, len(g.ops))
		for i := range g.ops {
			var ok bool
			after[i], ok = keys[g.ops[i].Key].decide(now, g.ops[i].Cost)
			pass = pass && ok
		}
		if pass != w.Charged(w.Ops) {
			t.Fatalf("passes in Go: %v; %+v", pass, w.Decisions)
		}
		if pass {
			all++
			for i := range g.ops {
				keys[g.ops[i].Key] = after[i]
			}
		}
	}
	for i := range g.ops {
		k, o, want := keys[g.ops[i].Key], &g.ops[i], int64(0)
		for _, w := range g.waiters {
			want = max(want, w.Ops[w.first+i].Ahead)
		}
		if again || all < int64(len(g.waiters)) {
			want = 0
		}
		units, lasts := int64(0), time.Duration(0)
		if all > 0 {
			units, lasts = k.ahead(now, o.Cost*all, want)
		}
		for _, w := range g.waiters {
			if d := &w.Decisions[i]; d.Units > 0 {
				units, lasts = units-d.Units, lasts-d.Lasts
			}
		}
		if units != 0 || lasts != 0 {
			t.Fatalf("%s %+v: %d units more for %v more, want %d", k.rule.Algorithm().Name(), k.rule.Limit(), units, lasts, want)
		}
	}
}
