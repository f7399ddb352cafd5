package refusals

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// overtake has the last charges of a shard's keys that may overtake a refusal: Redis decided them after it, and their answers are
// known before. Then the wait of the refusal is too short. A cost of 1 is refused only if nothing is left, so no charge comes after
// it: only while larger costs are asked for, charges are noted.
type overtake struct {
	last [8]charge
	next int // the oldest one, which is overwritten next
}

type charge struct {
	id            id
	of            *store.Prepared
	at, remaining int64
	heard         time.Duration
}

// Asks tells that checks are about to be asked about, and with -1 that their answers were remembered.
func (c *Cache) Asks(checks []store.Check, n int64) {
	large := int64(0)
	for i := range checks {
		if checks[i].Cost > 1 && !checks[i].Peek {
			large++
		}
	}
	if large > 0 {
		c.large.Add(n * large)
	}
}

// noteCharge notes that a key was charged under a limit. The lock is held.
func (c *Cache) noteCharge(s *shard, id id, p *store.Prepared, d *algorithms.Decision, now time.Duration) {
	s.charged(id, p)
	if o := &s.overtake; c.large.Load() > 0 {
		o.last[o.next] = charge{id, p, d.At, d.Remaining, now}
		o.next = (o.next + 1) % len(o.last)
	}
}

// by reports whether a charge that is known may have come after a refusal that was asked for at a time. The lock is held.
func (o *overtake) by(id id, r *refusal, sent time.Duration) bool {
	d := &r.decision
	if d.Banned || d.Remaining <= 0 {
		return false
	}
	if oldest := &o.last[o.next]; oldest.of != nil && oldest.heard >= sent {
		return true // there may have been others
	}
	for i := range o.last {
		c := &o.last[i]
		after := c.at > d.At || c.of == r.prepared && c.remaining < d.Remaining || c.of != r.prepared && c.at == d.At
		if c.of != nil && c.id == id && c.heard >= sent && after {
			return true
		}
	}
	return false
}
