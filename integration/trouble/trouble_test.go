// Package trouble_test breaks the Redis of a fleet in each way, under each kind of zone and with each
// on_store_error, and compares what passed and what was charged with what docs/failure.md promises.
package trouble_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

var policies = []string{zone.AllowOnError, zone.DenyOnError, zone.LocalOnError}

// TestTrouble: in each cell of faults, kinds of zones and on_store_error, what passes and what is charged is what
// docs/failure.md promises. "make test" draws some of the cells, DEEP=1 takes all.
func TestTrouble(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for _, name := range algorithms.Names() {
		if !slices.ContainsFunc(forms, func(k kind) bool { return strings.Contains(k.json, fmt.Sprintf("%q", name)) }) {
			t.Errorf("there is no cell of %s", name)
		}
	}
	var cells, ran, borrowed atomic.Int64
	t.Run("faults", func(t *testing.T) {
		for n, fault := range faults(t) {
			random := rand.New(rand.NewPCG(seed, uint64(n)))
			cells.Add(int64(len(kinds) * len(policies)))
			if fault.class == unallowed && !deep.Run() && random.IntN(6) > 0 {
				continue
			}
			t.Run(fault.name, func(t *testing.T) {
				t.Parallel()
				began := time.Now()
				f := newFleet(t, pair, fault.timeout, random.IntN(2) == 0)
				drawn := draw(random, n)
				for _, d := range drawn {
					f.newCell(fault, d.kind, d.policy)
				}
				borrowed.Add(f.suffer(fault))
				ran.Add(int64(len(drawn)))
				t.Logf("%d cells in %v", len(drawn), time.Since(began).Round(time.Millisecond))
			})
		}
	})
	t.Logf("%d of %d cells, %d events were lent when faults began", ran.Load(), cells.Load(), borrowed.Load())
	if borrowed.Load() == 0 {
		t.Error("nothing was lent when faults began")
	}
}

type drawn struct {
	kind   *kind
	policy string
}

// draw draws cells for the fault with a number: each kind of zone comes with some fault, and each fault with
// some of all kinds. All of them with DEEP=1.
func draw(random *rand.Rand, fault int) (cells []drawn) {
	for i := range kinds {
		for j, policy := range policies {
			fixed := (i+fault)%6 == 0 && j == (i/6+fault)%3
			if deep.Run() || fixed || random.IntN(24) == 0 {
				cells = append(cells, drawn{&kinds[i], policy})
			}
		}
	}
	return cells
}

// suffer has the cells of a fleet meet their fault. It returns how much was lent when it began.
func (f *fleet) suffer(fault *fault) (lent int64) {
	f.t.Helper()
	auditor := f.auditor()
	f.warm()
	for _, c := range f.cells {
		c.prepare(auditor)
	}
	for i := range f.stores {
		for _, n := range f.stats(i).Lent {
			lent += n
		}
	}
	fault.begin(f)
	if fault.class == unanswered || fault.class == forgotten {
		f.trip()
	}
	for _, c := range f.cells {
		c.press(during)
		c.finish()
	}
	fault.end(f)
	f.recovered()
	auditor = f.auditor() // of the server that is the master now
	for _, c := range f.cells {
		c.adjusted(auditor)
		c.press(after)
	}
	f.end()
	f.audit()
	return lent
}

// auditor opens a store that asks Redis itself.
func (f *fleet) auditor() *redisstore.Store {
	f.t.Helper()
	s, err := redisstore.New(redisstore.Options{Address: f.redis.Addr(), Timeout: generous, DenyCache: -1})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = s.Close() })
	return s
}

// audit compares all cells with what was promised.
func (f *fleet) audit() {
	f.t.Helper()
	auditor := f.auditor()
	for _, c := range f.cells {
		for _, client := range c.clients() {
			p, ok := c.promised(client)
			if !ok {
				f.t.Errorf("%s, %s: nothing is promised", c.zone, client)
				continue
			}
			wrong := c.check(client, p)
			if counted(client) {
				wrong = append(wrong, c.auditCharges(auditor, client)...)
			}
			for _, text := range wrong {
				f.t.Errorf("%s, %s: %s", c.zone, client, text)
			}
		}
	}
}

// used asks Redis how much a client has used, with what is lent.
func (c *cell) used(auditor *redisstore.Store, client string) (int64, error) {
	check := store.Check{Rule: c.rule, Key: client, Cost: 1, Peek: true}
	if c.special == "override" {
		check.KeyRules = &store.KeyRules{Overrides: true}
	}
	var d [1]algorithms.Decision
	err := auditor.Take(c.t.Context(), []store.Check{check}, d[:])
	return d[0].Quota - d[0].Remaining, err
}

// adjusted waits until late costs and refunds have been made, where none may be lost.
func (c *cell) adjusted(auditor *redisstore.Store) {
	c.t.Helper()
	late := c.special == "late"
	if c.fault.doubt || !late && (c.special != "refund" || c.lends) {
		return
	}
	patient.Until(c.t, c.zone+": what the responses have changed", func() bool {
		used, err := c.used(auditor, "pending")
		return err == nil && (late && used >= 9 || !late && used <= c.tolerance)
	})
}

// auditCharges compares what Redis has charged a client with what passed.
func (c *cell) auditCharges(auditor *redisstore.Store, client string) (wrong []string) {
	used, err := c.used(auditor, client)
	if err != nil {
		return []string{err.Error()}
	}
	if least, most := c.charged(client); used < least || used > most {
		wrong = append(wrong, fmt.Sprintf("%d are charged in the end, want %d to %d", used, least, most))
	}
	return wrong
}
