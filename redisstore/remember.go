package redisstore

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// settled is a set of checks, by index, that need no answer of Redis any more.
type settled [(store.MaxChecks + 63) / 64]uint64

func (s *settled) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s *settled) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

// remembered decides what is known to be refused, without Redis: the checks that are
// together if one of them is, and each that stands apart. What would be refused for the
// sake of another is not looked at, so its decision holds no numbers. It tells how many
// checks are left.
func (s *Store) remembered(checks []store.Check, decisions []algorithms.Decision, now time.Duration, known *settled, t *turn) (left int) {
	left = len(checks)
	if s.denied.empty() {
		return left
	}
	refused := false
	for i := range checks {
		c := &checks[i]
		if c.Peek {
			continue
		}
		d, ok := s.denied.refuses(c, c.Rule.At(s.date(c.Rule)), now, t)
		if !ok {
			continue
		}
		decisions[i] = d
		known.add(i)
		left--
		refused = refused || !c.Independent
	}
	if refused {
		for i := range checks {
			if !checks[i].Alone() && !known.has(i) {
				decisions[i] = algorithms.Decision{Allowed: true}
				known.add(i)
				left--
			}
		}
	}
	if left == 0 {
		s.denied.hits.Add(1)
	}
	return left
}

// standIn decides a request that could not be answered in time, if one of its checks was
// refused a moment before it came: rather that than let through what is over its limit
// because many ask at once. What would be refused for the sake of that check is not looked
// at, and what stands apart is left alone.
func (s *Store) standIn(checks []store.Check, decisions []algorithms.Decision, known *settled, came time.Duration) bool {
	refused := false
	for i := range checks {
		c := &checks[i]
		if known.has(i) {
			continue
		}
		decisions[i] = algorithms.Decision{Allowed: true, Exempt: c.Alone()}
		if c.Peek {
			continue
		}
		if d, ok := s.denied.lately(c, c.Rule.At(s.date(c.Rule)), came); ok {
			decisions[i] = d
			refused = refused || !c.Independent
		}
	}
	return refused
}

// remember takes note of what Redis has just decided.
func (s *Store) remember(q *question, checks []store.Check, sent time.Duration) {
	now := s.denied.now()
	for group := range q.each() {
		charged := q.charged(group)
		for i := range group {
			item := &group[i]
			if c := &checks[item.index]; !c.Peek && (c.Cost > 0 || q.decisions[item.index].Banned) {
				s.denied.learn(c, item.prepared, q.decisions[item.index], charged, sent, now)
			}
		}
	}
}

// forget is for a key that has got something back.
func (s *Store) forget(rule *store.Rule, key string) {
	s.denied.forget(rule.At(s.date(rule)), key)
}

// date is what the calendar needs to know of the time.
func (s *Store) date(rule *store.Rule) int64 {
	if rule.Dated() {
		return s.today()
	}
	return 0
}
