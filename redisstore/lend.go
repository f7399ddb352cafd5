package redisstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/loans"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// This is the way of a request that meets zones which lend. What this process holds of a key is
// spent without a call. The rest is asked for in one call, in which all that is decided together is
// charged or none. What this process holds is reserved meanwhile, and spent if all checks pass.

// maxRounds is how often a request waits for what others ask before it asks for itself.
const maxRounds = 8

// lends reports whether any of the checks is of a zone that lends.
func lends(checks []store.Check) bool {
	for i := range checks {
		if checks[i].Rule.Lend() > 0 {
			return true
		}
	}
	return false
}

// lentCheck is a check of a zone that lends.
type lentCheck struct {
	*store.Check
	index int          // among the caller's checks
	entry *loans.Entry // nil if the key does not come often
	next  lend.Next
	ask   lend.Ask

	charged int64 // the time at which Redis has charged the cost; 0: it has not
}

// takeLent decides checks of which at least one is of a zone that lends.
func (s *Store) takeLent(ctx context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	if len(checks) > store.MaxChecks {
		return fmt.Errorf("%d checks at once, at most %d", len(checks), store.MaxChecks)
	}
	var room [4]lentCheck
	together, others, joint := room[:0], 0, false
	for i := range checks {
		c := &checks[i]
		if c.Cost < 0 {
			return fmt.Errorf("cost must be at least 0, got %d", c.Cost)
		}
		switch {
		case c.Rule.Lend() == 0:
			others++
			joint = joint || !c.Alone()
		case c.Alone():
			if err := s.takeAlone(ctx, c, &decisions[i]); err != nil {
				return err
			}
		default:
			together = append(together, lentCheck{Check: c, index: i})
		}
	}
	joint = joint && len(together) > 0 // so the costs must not be charged before all is decided
	if len(together) > 0 {
		while := time.Duration(0)
		if joint || len(together) > 1 { // what is reserved is spent a moment later
			while = s.timeout
			for i := range together {
				while = min(while, together[i].Rule.Lend())
			}
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, while)
			defer cancel()
		}
		pass, err := s.takeTogether(ctx, together, decisions, joint, while)
		if err != nil {
			return err
		}
		joint = joint && pass
	}
	if others == 0 {
		return nil
	}
	return s.takeOthers(ctx, checks, decisions, together, joint)
}

// takeOthers decides the checks of zones that do not lend. If reserved is true, costs are reserved
// for the others, and are spent if all checks pass.
func (s *Store) takeOthers(ctx context.Context, checks []store.Check, decisions []algorithms.Decision, together []lentCheck, reserved bool) error {
	refused := slices.ContainsFunc(together, func(c lentCheck) bool { return !decisions[c.index].Allowed })
	var others []store.Check
	var indexes []int
	for i := range checks {
		switch c := &checks[i]; {
		case c.Rule.Lend() > 0:
		case refused && !c.Alone(): // it is not looked at
			decisions[i] = algorithms.Decision{Allowed: true}
		default:
			others, indexes = append(others, *c), append(indexes, i)
		}
	}
	made := make([]algorithms.Decision, len(others))
	err := s.take(ctx, others, made)
	pass := err == nil
	for i, index := range indexes {
		if err == nil {
			decisions[index] = made[i]
		}
		pass = pass && (others[i].Alone() || made[i].Allowed)
	}
	if reserved {
		s.settle(together, decisions, pass)
	}
	return err
}

// settle spends what was reserved, or gives it up.
func (s *Store) settle(together []lentCheck, decisions []algorithms.Decision, spend bool) {
	for i := range together {
		c, d := &together[i], &decisions[together[i].index]
		switch {
		case c.next == lend.Reserved && spend:
			c.entry.Spend(c.Cost)
			continue
		case spend:
			continue
		case c.next == lend.Reserved:
			c.entry.Cancel(c.Cost)
		case c.charged > 0:
			s.outbox.Add(store.Adjustment{Check: *c.Check, At: c.charged, Turn: c.charged, Delta: -c.Cost})
		default:
			continue
		}
		d.Remaining = min(d.Remaining+c.Cost, d.Quota)
	}
}

// takeAlone decides a check by itself, without what this process holds of its key.
func (s *Store) takeAlone(ctx context.Context, c *store.Check, d *algorithms.Decision) error {
	answers, err := s.callLend(ctx, []protocol.LendOp{s.lendOp(c, lend.Ask{Cost: c.Cost}, c.Peek)})
	if err == nil {
		*d = answers[0].Decision
	}
	return err
}

// takeTogether decides checks together, and reports whether all pass. With hold, costs that pass
// are only reserved.
func (s *Store) takeTogether(ctx context.Context, together []lentCheck, decisions []algorithms.Decision, hold bool, while time.Duration) (bool, error) {
	split := s.keys.cluster && !sameKey(together) // so no single call can decide
	began := s.loans.Now()
	for round := 0; ; round++ {
		now := s.loans.Now()
		refused, asks := -1, 0
		var other <-chan struct{}
		for i := range together {
			c := &together[i]
			if round == 0 {
				c.entry = s.loans.Find(c.Rule, c.Key, c.Cost, now, hold || split)
			}
			if c.next = lend.Alone; c.entry != nil {
				var over <-chan struct{}
				if c.next, over = c.entry.Next(now, c.Cost, while, &decisions[c.index]); over != nil {
					other = over
				}
			}
			switch c.next {
			case lend.Refused:
				refused = i
			case lend.Reserved:
			default:
				asks++
			}
		}
		switch {
		case refused >= 0:
			s.settle(together, decisions, false)
			for i := range together {
				if c := &together[i]; c.next != lend.Refused && c.next != lend.Reserved {
					decisions[c.index] = algorithms.Decision{Allowed: true}
				}
			}
			s.countLocal()
			return false, nil
		case other != nil && round < maxRounds:
			s.settle(together, decisions, false)
			select {
			case <-other:
				if s.loans.Now().Mono-began.Mono < s.timeout {
					continue
				}
				return false, fmt.Errorf("waiting for a loan: %w", context.DeadlineExceeded)
			case <-ctx.Done():
				return false, ctx.Err()
			}
		}
		pass, err := true, error(nil)
		if asks > 0 {
			pass, err = s.askTogether(ctx, together, decisions, hold || split, split, while)
		}
		if err != nil || !pass || !hold {
			s.settle(together, decisions, err == nil && pass)
		}
		return err == nil && pass, err
	}
}

// askTogether asks for what is not reserved. With borrow, what passes is reserved afterwards, and
// with each, every key is asked for in a call of its own.
func (s *Store) askTogether(ctx context.Context, together []lentCheck, decisions []algorithms.Decision, borrow, each bool, while time.Duration) (bool, error) {
	var ops []protocol.LendOp
	var asked []*lentCheck
	for i := range together {
		c := &together[i]
		if c.next == lend.Reserved {
			continue
		}
		c.ask = lend.Ask{Cost: c.Cost}
		if c.entry != nil && (c.next == lend.Begin || borrow) {
			if ask, ok := c.entry.Begin(s.loans.Now(), c.Cost, borrow); ok {
				c.ask, c.next = ask, lend.Begin
			}
		}
		asked = append(asked, c)
		ops = append(ops, s.lendOp(c.Check, c.ask, false))
	}
	answers := make([]protocol.LendAnswer, 0, len(ops))
	var err error
	for first, n := 0, len(ops); first < len(ops) && err == nil; first += n {
		if each {
			n = 1
		}
		var some []protocol.LendAnswer
		some, err = s.callLend(ctx, ops[first:first+n])
		answers = append(answers, some...)
	}
	pass := err == nil
	for i := range answers {
		decisions[asked[i].index] = answers[i].Decision
		pass = pass && answers[i].Allowed
	}
	now := s.loans.Now()
	for i, c := range asked {
		switch {
		case c.ask.Number > 0 && i >= len(answers):
			c.entry.Fail(c.ask.Number)
		case c.ask.Number > 0:
			reserve := int64(0)
			if borrow && pass {
				reserve = c.Cost
			}
			switch {
			case c.entry.End(now, c.ask.Number, answers[i].Answer, reserve, while):
				c.next = lend.Reserved
			case borrow && answers[i].Held == 0:
				c.next = lend.Alone
				if answers[i].Allowed && (pass || each) {
					c.charged = answers[i].Booked()
				}
			case reserve > 0:
				err = errLateLoan
			}
		case i < len(answers) && answers[i].Allowed && (pass || each):
			c.charged = answers[i].Booked()
			if c.entry != nil {
				c.entry.ChargedAlone(answers[i].At)
			}
		case i < len(answers) && c.entry != nil && !answers[i].Allowed:
			c.entry.RefusedAlone()
		}
	}
	return pass && err == nil, err
}

// sameKey reports whether all checks are of one key, and so of one slot of a Cluster.
func sameKey(together []lentCheck) bool {
	for i := range together[1:] {
		if together[i+1].Key != together[0].Key {
			return false
		}
	}
	return true
}

// countLocal counts a refusal that needed no call.
func (s *Store) countLocal() {
	if !s.cache.Off() {
		s.cache.Hit()
	}
}
