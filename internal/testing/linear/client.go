package linear

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// client asks one store, one operation after the other.
type client struct {
	*History
	id      int
	store   store.Store
	random  *rand.Rand
	charged []charge
	holds   int

	adjusted atomic.Bool // the last adjustment was carried out
	patience int         // how many more operations it is waited for
}

// charge is one that the client may adjust.
type charge struct {
	key  *key
	zone int
	store.Adjustment
}

func (c *client) run() {
	for n := c.next.Add(1); n <= int64(c.Operations); n = c.next.Add(1) {
		if c.SetTime != nil && (n%tickEvery == 0 || c.Clients == 1 && c.random.IntN(20) == 0) {
			c.tick()
		}
		if c.mayAdjust() && len(c.charged) > 0 && c.random.IntN(4) == 0 {
			c.adjust()
			continue
		}
		k := c.pick()
		zone := c.random.IntN(len(k.zones))
		switch rules := k.zones[zone].rules; {
		case c.random.IntN(60) == 0 && rules == nil:
			c.reset(k, zone)
		case rules != nil && rules.Overrides && c.random.IntN(20) == 0:
			c.set(k, zone)
		default:
			c.take(k)
		}
		k.leave()
	}
}

// begin records the call of an operation. An adjustment is vague until its end.
func (c *client) begin(k *key, in *input) *record {
	r := &record{client: c.id, answer: never, in: in, out: &output{lost: true}}
	k.mu.Lock()
	defer k.mu.Unlock()
	r.call = c.since()
	k.history = append(k.history, r)
	if in.kind == adjust {
		k.vague++
	}
	return r
}

// end records its answer. Without an answer, it may be carried out at any later time, or never.
func (c *client) end(k *key, r *record, out *output) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r.answer, r.out = c.since(), out
	if r.in.kind == adjust {
		k.vague--
	}
}

// endWith is end for an operation that has no other answer than an error.
func (c *client) endWith(k *key, r *record, err error) {
	if err != nil {
		c.lose(k, err)
		return
	}
	c.end(k, r, &output{})
}

// lose notes that there is no answer.
func (c *client) lose(k *key, err error) {
	if c.SetTime == nil {
		c.t.Errorf("without faults: %v", err)
	}
	c.lost.Add(1)
	k.mu.Lock()
	k.vague++
	k.mu.Unlock()
}

// take asks for a charge in one zone or in all zones of a key.
func (c *client) take(k *key) {
	in := &input{kind: take}
	shape := c.random.IntN(8)
	for i, one := range k.zones {
		check := store.Check{Rule: one.rule, Key: k.name, Cost: c.cost(), KeyRules: one.rules, Independent: shape == 1}
		if _, leases := one.rule.Algorithm().(algorithms.Leaser); leases {
			c.holds++
			check.LeaseID = fmt.Sprintf("%d-%d", c.id, c.holds)
		}
		in.checks, in.zones = append(in.checks, check), append(in.zones, i)
	}
	if shape == 0 || len(k.zones) > 1 && shape > 5 {
		i := c.random.IntN(len(k.zones))
		in.checks, in.zones = in.checks[i:i+1], in.zones[i:i+1]
		if shape == 0 {
			in.checks[0].Peek, in.checks[0].LeaseID = true, ""
		}
	}
	decisions := make([]algorithms.Decision, len(in.checks))
	records := c.beginTake(k, in)
	switch err := c.store.Take(context.Background(), in.checks, decisions); {
	case errors.Is(err, store.ErrUnavailable):
		c.unsent(k, records)
		return
	case err != nil:
		c.lose(k, err)
		c.giveBackLost(k, in, records[0].call)
		return
	}
	for i, r := range records {
		n := len(r.in.checks)
		c.end(k, r, &output{decisions: decisions[i*n : (i+1)*n]})
	}
	refused := slices.ContainsFunc(decisions, func(d algorithms.Decision) bool { return !d.Allowed })
	for i := range decisions {
		check, d := &in.checks[i], &decisions[i]
		switch {
		case !d.Allowed:
			c.refused.Add(1)
		case (check.Independent || !refused) && !check.Peek && check.Cost > 0 && !d.Exempt && c.SetTime != nil:
			c.charged = append(c.charged, charge{k, in.zones[i], store.GiveBack(check, d)})
		}
	}
	c.charged = c.charged[max(0, len(c.charged)-4):]
}

// beginTake records the call of a take. Independent checks are decided by themselves, so each is an
// operation of its own: other calls may come between them.
func (c *client) beginTake(k *key, in *input) (records []*record) {
	if !in.checks[0].Independent {
		return []*record{c.begin(k, in)}
	}
	for i := range in.checks {
		records = append(records, c.begin(k, &input{kind: take, checks: in.checks[i : i+1], zones: in.zones[i : i+1]}))
	}
	return records
}

func (c *client) cost() int64 {
	switch c.random.IntN(10) {
	case 0:
		return 0
	case 1, 2:
		return 1 + c.random.Int64N(5)
	}
	return 1
}

// unsent drops operations that were certainly not carried out, and waits until the client asks
// again.
func (c *client) unsent(k *key, records []*record) {
	k.mu.Lock()
	for _, r := range records {
		r.in = nil
	}
	k.mu.Unlock()
	c.next.Add(-1)
	time.Sleep(5 * time.Millisecond)
}

// giveBackLost records what a store does by itself when an answer was lost: it gives back what it
// may have lent.
func (c *client) giveBackLost(k *key, lost *input, call int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, check := range lost.checks {
		if check.LeaseID != "" {
			back := &input{kind: adjust, zones: lost.zones[i : i+1], adjust: store.Adjustment{Check: check, Delta: -check.Cost}}
			k.history = append(k.history, &record{client: c.id, call: call, answer: never, in: back, out: &output{lost: true}})
		}
	}
}

// adjust gives back one of the client's charges, or a part of it, or charges more.
func (c *client) adjust() {
	last := len(c.charged) - 1
	i := c.random.IntN(len(c.charged))
	made := c.charged[i]
	c.charged[i], c.charged = c.charged[last], c.charged[:last]
	switch {
	case made.LeaseID != "":
	case c.random.IntN(3) == 0:
		made.Delta = 1 + c.random.Int64N(3)
	case c.random.IntN(3) == 0:
		made.Delta = -1 - c.random.Int64N(made.Cost)
	}
	r := c.begin(made.key, &input{kind: adjust, zones: []int{made.zone}, adjust: made.Adjustment})
	c.adjusted.Store(false)
	c.patience = 50
	made.Done = func(changed bool) {
		c.end(made.key, r, &output{changed: changed})
		c.adjusted.Store(true)
	}
	c.store.Adjust(made.Adjustment)
}

// mayAdjust reports whether the last adjustment was carried out, or is given up. So a store that
// waits for Redis does not gather adjustments.
func (c *client) mayAdjust() bool {
	c.patience--
	return c.patience < 0 || c.adjusted.Load()
}

// reset makes a key new in one zone.
func (c *client) reset(k *key, zone int) {
	r := c.begin(k, &input{kind: reset, zones: []int{zone}})
	c.endWith(k, r, c.store.Reset(context.Background(), k.zones[zone].rule, k.name))
}

// set sets the override of a key in one zone, or clears it.
func (c *client) set(k *key, zone int) {
	operator, ok := c.store.(store.Overrider)
	if !ok {
		return
	}
	in, to := &input{kind: set, zones: []int{zone}}, store.Override{}
	if fit := k.zones[zone].overrides; c.random.IntN(2) == 0 {
		in.override = fit[c.random.IntN(len(fit))]
		to = in.override.Override
	}
	r := c.begin(k, in)
	c.endWith(k, r, operator.SetRule(context.Background(), k.zones[zone].rule, store.Selector{Key: k.name}, to))
}
