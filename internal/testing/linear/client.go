package linear

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// client asks one store, one operation after the other.
type client struct {
	*world
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
	for {
		n := c.next.Add(1)
		if n > int64(c.Operations) {
			return
		}
		c.history.asked.Add(1)
		if c.SetTime != nil && (n%tickEvery == 0 || c.Clients == 1 && c.random.IntN(20) == 0) {
			c.tick(c.id, c.random)
		}
		if c.mayAdjust() && len(c.charged) > 0 && c.random.IntN(4) == 0 {
			c.adjust()
			continue
		}
		k := c.pick(c.random)
		if zone := c.random.IntN(len(k.zones)); c.random.IntN(60) == 0 && k.zones[zone].rules == nil {
			c.reset(k, zone)
		} else if rules := k.zones[zone].rules; rules != nil && rules.Overrides && c.random.IntN(20) == 0 {
			c.set(k, zone)
		} else {
			c.take(k)
		}
		k.leave()
	}
}

// begin records the call of an operation.
func (c *client) begin(k *key, in *input) *record {
	r := &record{client: c.id, answer: never, in: in, out: &output{lost: true}}
	k.mu.Lock()
	defer k.mu.Unlock()
	r.call = c.history.since()
	k.history = append(k.history, r)
	return r
}

// end records its answer. Without an answer, it may be carried out at any later time, or never.
func (c *client) end(k *key, r *record, out *output) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r.answer, r.out = c.history.since(), out
}

func (c *client) lose(k *key, err error) {
	if c.SetTime == nil {
		c.t.Errorf("without faults: %v", err)
	}
	c.history.lost.Add(1)
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
	for i := range decisions {
		check, d := in.checks[i], &decisions[i]
		switch all := check.Independent || admitted(decisions); {
		case !d.Allowed:
			c.history.refused.Add(1)
		case all && !check.Peek && check.Cost > 0 && !d.Exempt && c.SetTime != nil:
			c.note(charge{k, in.zones[i], store.Adjustment{Check: check, At: d.Booked(), Turn: d.Turn(), Override: d.Override}})
		}
	}
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

func admitted(decisions []algorithms.Decision) bool {
	for i := range decisions {
		if !decisions[i].Allowed {
			return false
		}
	}
	return true
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
	c.history.asked.Add(-1)
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

// note remembers the latest charges.
func (c *client) note(made charge) {
	if len(c.charged) == 4 {
		c.charged = c.charged[1:]
	}
	c.charged = append(c.charged, made)
}

// adjust gives back one of the client's charges, or a part of it, or charges more.
func (c *client) adjust() {
	last := len(c.charged) - 1
	i := c.random.IntN(len(c.charged))
	made := c.charged[i]
	c.charged[i], c.charged = c.charged[last], c.charged[:last]
	switch made.Delta = -made.Cost; {
	case made.LeaseID != "":
	case c.random.IntN(3) == 0:
		made.Delta = 1 + c.random.Int64N(3)
	case c.random.IntN(3) == 0:
		made.Delta = -1 - c.random.Int64N(made.Cost)
	}
	k := made.key
	r := c.begin(k, &input{kind: adjust, zones: []int{made.zone}, adjust: made.Adjustment})
	k.mu.Lock()
	k.vague++
	k.mu.Unlock()
	c.adjusted.Store(false)
	c.patience = 50
	made.Done = func(changed bool) {
		c.end(k, r, &output{changed: changed})
		k.mu.Lock()
		k.vague--
		k.mu.Unlock()
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
	rule := k.zones[zone].rule
	r := c.begin(k, &input{kind: reset, zones: []int{zone}, checks: []store.Check{{Rule: rule, Key: k.name}}})
	switch err := c.store.Reset(context.Background(), rule, k.name); {
	case err == nil:
		c.end(k, r, &output{})
	default:
		c.lose(k, err)
	}
}

// set sets the override of a key in one zone, or clears it.
func (c *client) set(k *key, zone int) {
	operator, ok := c.store.(store.Overrider)
	if !ok {
		return
	}
	rule := k.zones[zone].rule
	in := &input{kind: set, zones: []int{zone}, checks: []store.Check{{Rule: rule, Key: k.name}}}
	if fit := k.zones[zone].overrides; c.random.IntN(2) == 0 {
		in.override = fit[c.random.IntN(len(fit))]
	}
	r := c.begin(k, in)
	var to store.Override
	if in.override != nil {
		to = in.override.Override
	}
	if err := operator.SetRule(context.Background(), rule, store.Selector{Key: k.name}, to); err != nil {
		c.lose(k, err)
		return
	}
	c.end(k, r, &output{})
}
