// Package prepaid is the layer of zones with lend. Units of keys that come often are charged ahead, by an ordinary check
// that wants some more, and spent here without a call.
//
// There is one rule. The store books n units that it charges at a, beside the cost of a request, as if they were used at
// e, when their hold ends. They may be spent before e: this process counts from before it sent the call, by its own clock,
// less a thousandth, so it stops before the store counts them, and no clocks need to agree. So each unit is spent no
// later than it counts. That is all there is to prove:
//
//   - A crash, or an answer that is lost or late: the units are never spent, and count.
//   - Redis is away: they are spent until their hold ends, and then on_store_error decides.
//   - Other processes: they find less room. Nobody needs to know who holds what, so there is no book of it.
//   - What is left when a hold ends goes back by an ordinary adjustment of a charge that was made at e.
//
// What "as if they were used at e" means for each algorithm is in algorithms/prepaid.go. No limit gets stricter for keys of
// which nothing is held.
//
// Most keys come rarely: then nothing is held. The third request of a key within a hold makes one, and the first request
// that finds too little asks for more, with its own cost. While it is under way, others ask for themselves. If many units
// are held of a key, more are asked for before all are spent, so nobody waits.
package prepaid

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	shards   = 64
	perShard = 256 // holds of a shard; further keys are asked for as if they came rarely
	slots    = 512 // of a shard, in which requests of other keys are counted

	// often is how many requests of a key within a hold make one.
	often = 3

	// drift is how much faster the store's clock may run than that of this process: by 1/drift.
	drift = 1000

	// longestPause bounds how long a refusal is remembered, because a refund or a reset may end it.
	longestPause = time.Second
)

// Table has what is held, and counts how often other keys come. Times are on one clock that does not go back.
type Table struct {
	seed   maphash.Seed
	shards [shards]shard
}

type shard struct {
	mu    sync.Mutex
	holds map[id]*hold
	slots []slot
	back  []store.Adjustment // to be sent
}

type id struct {
	terms uint64 // of the rule
	key   string
}

// slot counts requests of a key since a time.
type slot struct {
	key, since uint32 // a part of the hash; in milliseconds
	n          uint16
}

// told is a decision of the store, and when it came.
type told struct {
	algorithms.Decision
	came time.Duration
}

// batch is what one charge has paid for.
type batch struct {
	told
	units int64         // that are left
	end   time.Duration // until when they may be spent
}

// hold is what is held of a key.
type hold struct {
	batch
	next  batch // charged before the other one was spent
	check store.Check
	left  int64 // of the limit, as far as is known, with what is held
	no    told  // the last refusal
	cost  int64 // that it refuses
	pause time.Duration
	gone  bool // from the table
	demand
}

// Ask is what a request asks the store for. It must be told the answer with End, or Fail.
type Ask struct {
	Cost, Ahead int64 // the cost is less than that of the request if something is held
	hold        *hold
	took        int64 // of what the charge of was has paid
	was         algorithms.Decision
}

// NewTable returns an empty table.
func NewTable() *Table { return &Table{seed: maphash.MakeSeed()} }

// lock locks the shard of a key, and returns the key's hold, or nil.
func (t *Table) lock(rule *store.Rule, key string) (*shard, *hold, uint64) {
	hash := maphash.String(t.seed, key) ^ rule.Terms()
	s := &t.shards[hash%shards]
	s.mu.Lock()
	return s, s.holds[id{rule.Terms(), key}], hash
}

// Take decides a check by what is known of its key. If it cannot, the store is to be asked. A check that is known may ask
// beside, for the next ones.
func (t *Table) Take(c *store.Check, now time.Duration, d *algorithms.Decision) (known bool, a Ask) {
	s, h, hash := t.lock(c.Rule, c.Key)
	defer s.mu.Unlock()
	a.Cost = c.Cost
	if h == nil {
		h = s.count(c, hash, now)
	}
	if h == nil || c.Cost == 0 { // which needs the store's word about bans
		return false, a
	}
	h.came += c.Cost
	s.turn(h, now)
	switch a.hold = h; {
	case c.Cost <= h.units:
		h.units, h.left = h.units-c.Cost, h.left-c.Cost
		*d = h.spent(now)
		if h.next.units > 0 || h.Units < background || 4*h.units > h.Units {
			return true, a
		}
		known, a.Cost = true, 0
	case c.Cost == h.cost && now < h.pause:
		*d = h.refused(now)
		return true, a
	case isLog(c.Rule): // which gives no more back of a charge than it was, so one booking has all of the cost
		s.giveBack(h, &h.Decision, h.units, true)
		h.units = 0
	default:
		a.took, a.was, h.units = h.units, h.Decision, 0
		a.Cost -= a.took
	}
	a.Ahead = h.want(now, c.Rule.Hold(), h.units)
	return known, a
}

func isLog(rule *store.Rule) bool {
	_, ok := rule.Algorithm().(algorithms.Recorder)
	return ok
}

// count counts a request of a key that holds nothing, and makes a hold if it comes often. Of keys that share a slot, the
// one that comes most often stays.
func (s *shard) count(c *store.Check, hash uint64, now time.Duration) *hold {
	if s.slots == nil {
		s.slots, s.holds = make([]slot, slots), make(map[id]*hold)
	}
	n, key, at := &s.slots[hash/shards%slots], uint32(hash>>32), uint32(now/time.Millisecond)
	switch old := time.Duration(at-n.since)*time.Millisecond > c.Rule.Hold(); {
	case n.key != key && n.n > 1 && !old:
		n.n--
		return nil
	case n.key != key || old:
		*n = slot{key: key, since: at}
	}
	if n.n++; n.n < often || len(s.holds) >= perShard {
		return nil
	}
	h := &hold{check: *c, demand: demand{since: now - c.Rule.Hold(), came: (often - 1) * c.Cost}}
	s.holds[id{c.Rule.Terms(), c.Key}] = h
	return h
}

// turn gives back what was not spent in time, and goes on to the next batch if one is used up.
func (s *shard) turn(h *hold, now time.Duration) {
	for h.units > 0 && now >= h.end || h.units == 0 && h.next.units > 0 {
		s.giveBack(h, &h.Decision, h.units, false)
		h.batch, h.next = h.next, batch{}
	}
}

// giveBack gives back units that a decision has charged, if some of them still count.
func (s *shard) giveBack(h *hold, d *algorithms.Decision, units int64, early bool) {
	if units > 0 && (early || counts(h.check.Rule, d, units)) {
		s.back = append(s.back, store.Adjustment{Check: h.check, At: booked(d), Turn: d.At, Delta: -units})
	}
}

func (s *shard) giveBackAll(h *hold) {
	s.giveBack(h, &h.Decision, h.units, true)
	s.giveBack(h, &h.next.Decision, h.next.units, true)
	h.units, h.next.units = 0, 0
}

// counts reports whether some of the units that were held to the end can still be given back: not if they have come back
// with their window, and not of a bucket if as many would have come back since.
func counts(rule *store.Rule, d *algorithms.Decision, units int64) bool {
	l := rule.Limit()
	_, lossy := rule.Algorithm().(algorithms.Lossy)
	_, fixed := rule.Algorithm().(algorithms.FixedWindow)
	switch {
	case fixed:
		return d.Lasts > rule.Hold()
	case l.Refill == algorithms.RefillInterval:
		return d.Lasts == rule.Hold()
	case lossy:
		return float64(units)*float64(l.Window) > float64(l.Events)*float64(rule.Hold())
	}
	return true
}

// booked is when the units that a decision has charged ahead count as made.
func booked(d *algorithms.Decision) int64 { return d.At + d.Lasts.Microseconds() }

// put puts units back that were spent and not used, if what they came with lasts.
func (h *hold) put(booking, units int64, now time.Duration) bool {
	if h.gone || now >= h.end || booked(&h.Decision) != booking {
		return false
	}
	h.units, h.left = h.units+units, h.left+units
	return true
}

// End takes the answer to an ask that was sent at a time. The check was charged, or it or another one of its request was
// refused. The decision becomes that of the request.
func (t *Table) End(c *store.Check, a Ask, d *algorithms.Decision, charged bool, sent, now time.Duration) {
	if a.hold == nil {
		return
	}
	s, _, _ := t.lock(c.Rule, c.Key)
	defer s.mu.Unlock()
	h := a.hold
	h.asks = h.asks && a.Ahead == 0
	s.turn(h, now)
	held := h.units + h.next.units
	if h.gone {
		s.giveBack(h, d, d.Units, true)
	} else if d.Units > 0 {
		lasts := min(d.Lasts, c.Rule.Hold())
		to := &h.next
		if h.units == 0 {
			to = &h.batch
		}
		*to = batch{told{*d, now}, d.Units, sent + lasts - lasts/drift - 2*time.Microsecond}
		h.check.KeyRules = c.KeyRules
	}
	switch {
	case d.Allowed && charged:
		d.Remaining = min(d.Quota, d.Remaining+held)
		h.left, h.pause = d.Remaining, 0
		if a.took > 0 { // so that a refund gives back no more than was charged by then
			d.At, d.Ahead = a.was.At, a.was.Lasts
		}
		return
	case !d.Allowed && c.KeyRules == nil && a.took == 0 && d.Quota > 0:
		h.no, h.cost, h.pause = told{*d, now}, c.Cost, sent+min(max(d.RetryAfter, c.Rule.Hold()), longestPause)
	}
	s.putBack(h, &a, now)
}

// Fail gives up an ask, of which nobody knows whether it was carried out.
func (t *Table) Fail(c *store.Check, a Ask, now time.Duration) {
	if a.hold == nil {
		return
	}
	s, _, _ := t.lock(c.Rule, c.Key)
	defer s.mu.Unlock()
	a.hold.asks, a.hold.last = a.hold.asks && a.Ahead == 0, 0
	s.putBack(a.hold, &a, now)
}

// putBack puts back what an ask took.
func (s *shard) putBack(h *hold, a *Ask, now time.Duration) {
	if a.took > 0 && !h.put(booked(&a.was), a.took, now) {
		s.giveBack(h, &a.was, a.took, true)
	}
}

// at returns what was told as of now.
func (t *told) at(now time.Duration) algorithms.Decision {
	d, age := t.Decision, now-t.came
	if d.RetryAfter != algorithms.Never {
		d.RetryAfter = max(0, d.RetryAfter-age)
	}
	d.NextAfter, d.ResetAfter = max(0, d.NextAfter-age), max(0, d.ResetAfter-age)
	d.Ahead, d.Units, d.Lasts = d.Lasts, 0, 0
	return d
}

// spent is the decision on a request that is paid by the hold. What has come back since the store's answer is shown by the
// next one.
func (h *hold) spent(now time.Duration) algorithms.Decision {
	d := h.batch.at(now)
	if d.Remaining = max(0, min(h.left, d.Quota)); d.Remaining < d.Quota {
		d.NextAfter = max(d.NextAfter, time.Microsecond)
		d.ResetAfter = max(d.ResetAfter, d.NextAfter)
	}
	return d
}

// refused is the decision on a request that is refused as one before it was. The store is asked again when the pause is over.
func (h *hold) refused(now time.Duration) algorithms.Decision {
	d, rest := h.no.at(now), h.pause-now
	d.RetryAfter, d.NextAfter, d.ResetAfter = max(d.RetryAfter, rest), max(d.NextAfter, rest), max(d.ResetAfter, rest)
	return d
}
