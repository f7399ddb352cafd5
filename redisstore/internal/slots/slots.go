// Package slots is the layer of limits of concurrency in zones that lend. Nothing is lent of these, but slots are kept: the
// slot of a request that has ended is kept for the next request, as long as enough is free. To Redis and to the link it is a
// slot like any other. The link renews it, by the name of the request that took it, until it is given back.
// [Layer.Renewed] hears of each renewal that was answered, because a slot is used again only while its lease lasts for
// certain.
package slots

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/loans"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Layer implements [layer.Layer].
type Layer struct {
	Config
	below layer.Layer

	Kept   *Table
	spared atomic.Uint64 // requests that needed nothing but slots that are kept
}

// Config is what the layer needs beside the one below it.
type Config struct {
	Loans     *loans.Table // which has the time, and knows which keys come often
	PerCall   int          // how many keys may share a call; 1: each needs its own
	Timeout   time.Duration
	Processes func() int // that use the store

	// Done is closed when the layer is to end.
	Done <-chan struct{}
}

// New puts the layer on another.
func New(below layer.Layer, c *Config) *Layer {
	return &Layer{Config: *c, below: below, Kept: NewTable()}
}

// Take implements [layer.Layer].
func (l *Layer) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	for i := range checks {
		if checks[i].Rule.KeepsSlots() {
			return l.take(ctx, checks, decisions)
		}
	}
	return l.below.Take(ctx, checks, decisions)
}

// take decides what it can with slots that are kept, and has the layer below decide the rest.
func (l *Layer) take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) (err error) {
	var kept, often layer.Set
	left, sent := 0, l.Loans.Now()
	for i := range checks {
		switch c := &checks[i]; {
		case uses(c):
			if d, ok := l.Kept.Get(c, sent); ok {
				decisions[i] = d
				kept.Add(i)
				continue
			}
			if l.Loans.Often(c.Rule, c.Key, sent) {
				often.Add(i)
			}
			l.giveBack(l.Kept.GiveWay(c, sent))
		case c.Independent && c.Rule.KeepsSlots() && c.Cost > 0: // a dry run is told what holds for requests
			l.giveBack(l.Kept.GiveWay(c, sent))
		}
		left++
	}
	if left > 0 {
		rest := layer.Rest(checks, decisions, &kept)
		l.awaitReturns(ctx, rest.Checks)
		err = l.below.Take(ctx, rest.Checks, rest.Decisions)
		rest.Into(decisions)
	} else {
		l.spared.Add(1)
	}
	pass := err == nil && layer.Pass(checks, decisions)
	for i := range checks {
		switch c, d := &checks[i], &decisions[i]; {
		case kept.Has(i) && !pass:
			l.Kept.Cancel(c.LeaseID)
			d.Remaining = min(d.Remaining+c.Cost, d.Quota)
		case kept.Has(i) || err != nil || !c.Rule.KeepsSlots():
		case c.Peek && !d.Allowed && !d.Banned && l.Kept.Keeps(c): // for everybody else
			d.Allowed, d.RetryAfter = true, 0
		case c.Independent && !c.Peek && d.Quota > 0:
			l.Kept.Free(c, sent, d)
		case !c.Alone() && c.LeaseID != "" && d.Quota > 0:
			l.Kept.Told(c, sent, d, pass && c.Cost > 0, often.Has(i))
		}
		if uses(&checks[i]) && !kept.Has(i) {
			l.Kept.Answered(&checks[i])
		}
	}
	return err
}

// uses reports whether a slot that is kept may decide a check.
func uses(c *store.Check) bool {
	return c.Rule.KeepsSlots() && !c.Alone() && c.LeaseID != "" && c.Cost > 0
}

// awaitReturns waits for what was given back of the keys of checks, and could be overtaken.
func (l *Layer) awaitReturns(ctx context.Context, checks []store.Check) {
	for i := range checks {
		if c := &checks[i]; c.Rule.KeepsSlots() {
			l.Kept.AwaitReturns(ctx, c, l.Loans.Now(), l.Timeout/2)
		}
	}
}

// Adjust implements [layer.Layer]. It keeps the slots of requests that have ended.
func (l *Layer) Adjust(adjustments ...layer.Adjustment) {
	if !slices.ContainsFunc(adjustments, func(a layer.Adjustment) bool { return a.Rule.KeepsSlots() }) {
		l.below.Adjust(adjustments...)
		return
	}
	left := make([]layer.Adjustment, 0, len(adjustments))
	for _, a := range adjustments {
		switch {
		case !l.release(&a):
			left = append(left, a)
		case a.Done != nil:
			a.Done(true)
		}
	}
	l.below.Adjust(left...)
}

// release keeps the slot of a request that has ended, and reports whether it did. Otherwise the adjustment gives it back, by
// its own name.
func (l *Layer) release(a *layer.Adjustment) bool {
	if !a.Rule.KeepsSlots() || a.LeaseID == "" || a.Delta > -a.Cost {
		return false
	}
	fate, name := l.Kept.Release(a.LeaseID, l.Loans.Now(), l.Processes())
	switch fate {
	case Kept:
		return true
	case Back:
		a.LeaseID = name
	case Unknown:
	}
	return false
}

// Forget implements [layer.Layer].
func (l *Layer) Forget(rule *store.Rule, key string) {
	if rule.KeepsSlots() {
		l.Void(func(z, k string) bool { return k == key && z == rule.Zone() })
	}
	l.below.Forget(rule, key)
}

// Holds reports whether this process may keep something.
func (l *Layer) Holds() bool { return l.Kept.Any() }

// Void gives up what is kept of some keys, because they have got other rules, or the store has forgotten them.
func (l *Layer) Void(which func(zone, key string) bool) {
	l.giveBack(l.Kept.Void(l.Loans.Now(), which))
}

// Renewed tells that the link's renewal of a lease, sent at a time, was just answered.
func (l *Layer) Renewed(leaseID string, sent time.Time) {
	l.Kept.Renewed(leaseID, l.Loans.At(sent), l.Loans.Now())
}

// Count adds what is kept to the counts of a store.
func (l *Layer) Count(all *store.Stats) {
	kept, keys := l.Kept.Kept()
	for zone, n := range kept {
		all.InUse[zone] -= n
		all.Lent[zone] += n
		all.Loans[zone] += keys[zone]
	}
	all.Spared += l.spared.Load()
}
