// Package refusals is the layer that remembers refusals for a moment, so that a client that keeps asking costs
// Redis next to nothing.
package refusals

import (
	"context"
	"errors"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Layer implements [layer.Layer].
type Layer struct {
	layer.Layer // below
	*Cache
	Today *layer.Date
}

// Take implements [layer.Layer]. It decides what is known to be refused.
func (l *Layer) Take(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	came := l.Now()
	var known layer.Set
	var err error
	if left := l.decide(checks, decisions, came, &known); left > 0 {
		err = l.ask(ctx, checks, decisions, left, &known, came)
	}
	if err != nil && unanswered(err) && !l.Empty() && l.refuse(checks, decisions, &known, came, node.MayHaveRun(err)) {
		return nil
	}
	return err
}

// unanswered reports whether a request got no answer in time, of Redis or of this process.
func unanswered(err error) bool {
	switch node.Failure(err) {
	case store.FailureTimeout, store.FailureBusy:
		return true
	}
	return false
}

// decide decides what is known to be refused: the checks that are decided together if one of them is refused,
// and each that is decided by itself. What would be refused for the sake of another check is not looked at, so
// its decision holds no numbers. It returns how many checks are left.
func (l *Layer) decide(checks []store.Check, decisions []algorithms.Decision, now time.Duration, known *layer.Set) (left int) {
	left = len(checks)
	if l.Empty() {
		return left
	}
	refused := false
	for i := range checks {
		c := &checks[i]
		if c.Peek {
			continue
		}
		d, ok := l.Get(c, l.Today.At(c.Rule), now)
		if !ok {
			continue
		}
		decisions[i] = d
		known.Add(i)
		left--
		refused = refused || !c.Independent
	}
	if refused {
		for i := range checks {
			if !checks[i].Alone() && !known.Has(i) {
				decisions[i] = algorithms.Decision{Allowed: true}
				known.Add(i)
				left--
			}
		}
	}
	if left == 0 {
		l.hits.Add(1)
	}
	return left
}

// ask has the layer below decide what is not known, and remembers the answer.
func (l *Layer) ask(ctx context.Context, checks []store.Check, decisions []algorithms.Decision, left int, known *layer.Set, sent time.Duration) error {
	if left == len(checks) {
		err := l.Layer.Take(ctx, checks, decisions)
		if err == nil {
			l.remember(checks, decisions, sent)
		}
		return err
	}
	rest := layer.Rest(checks, known)
	err := l.Layer.Take(ctx, rest.Checks, rest.Decisions)
	if errors.Is(err, store.ErrFull) && rest.Alone() && !layer.Pass(checks, decisions) {
		for i := range rest.Decisions { // the request is refused; what is decided by itself is not charged
			rest.Decisions[i] = algorithms.Decision{Allowed: true, Exempt: true}
		}
		err = nil
	} else if err == nil {
		l.remember(rest.Checks, rest.Decisions, sent)
	}
	rest.Into(decisions)
	return err
}

// remember puts what was just decided into the cache.
func (l *Layer) remember(checks []store.Check, decisions []algorithms.Decision, sent time.Duration) {
	now, pass := l.Now(), layer.Pass(checks, decisions)
	for i := range checks {
		c, d := &checks[i], &decisions[i]
		if !c.Peek && (c.Cost > 0 || d.Banned) {
			l.Put(c, l.Today.At(c.Rule), *d, d.Allowed && (pass || c.Alone()), sent, now)
		}
	}
}

// refuse refuses a request that could not be answered in time, if one of its checks was
// refused a moment before it came. Otherwise requests would pass that are over their limit,
// because many ask at once. What would be refused for the sake of that check is not looked
// at, and what is decided by itself is left alone. If the request was sent, a slot may have become free by then, and
// all be charged. Of that only the slot is given back.
func (l *Layer) refuse(checks []store.Check, decisions []algorithms.Decision, known *layer.Set, came time.Duration, sent bool) bool {
	refused := false
	for i := range checks {
		c := &checks[i]
		if known.Has(i) {
			continue
		}
		decisions[i] = algorithms.Decision{Allowed: true, Exempt: c.Alone()}
		if _, leases := c.Rule.Algorithm().(algorithms.Leaser); c.Peek || leases && sent && len(checks) > 1 {
			continue
		}
		if d, ok := l.Recent(c, l.Today.At(c.Rule), came); ok {
			decisions[i] = d
			refused = refused || !c.Independent
		}
	}
	return refused
}

// Adjust implements [layer.Layer].
func (l *Layer) Adjust(adjustments ...store.Adjustment) {
	for i := range adjustments {
		l.Adjusted(&adjustments[i])
	}
	l.Layer.Adjust(adjustments...)
}

// Forget implements [layer.Layer].
func (l *Layer) Forget(rule *store.Rule, key string) {
	l.DeleteKey(rule, key)
	l.Layer.Forget(rule, key)
}
