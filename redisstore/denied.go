package redisstore

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	deniedShards = 64

	// maxDenied bounds the refusals that a shard remembers. Beyond it some are forgotten:
	// that costs a call, and frees nobody.
	maxDenied = 1024
)

// denied remembers refusals for a moment, so that a client that keeps asking costs Redis
// next to nothing. A refusal holds until its wait is over, whatever others do meanwhile,
// unless something is given back, a key is reset or a limit raised; so it is remembered
// no longer than most. That is exact for all but what is lent, which ends when it ends.
// A nil one remembers nothing.
type denied struct {
	most   time.Duration
	moment time.Duration // how long a refusal was over just now
	epoch  time.Time
	seeds  [2]maphash.Seed
	size   atomic.Int64
	hits   atomic.Int64
	shards [deniedShards]deniedShard
}

type deniedShard struct {
	mu    sync.Mutex
	known map[deniedID]refusal
}

// deniedID is a key of a definition: another limit has another one.
type deniedID struct {
	prepared *store.Prepared
	key      [2]uint64
}

// refusal is what is remembered of one. Times are since the epoch of denied.
type refusal struct {
	cost     int64         // this or more is refused
	until    time.Duration // counted from when the question was sent
	received time.Duration
	decision algorithms.Decision
	asked    chan struct{} // see turn
	brief    bool          // was over when it was received: nobody takes turns at it
}

func newDenied(most, moment time.Duration) *denied {
	if most <= 0 {
		return nil
	}
	d := &denied{most: most, moment: moment, epoch: time.Now(), seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
	for i := range d.shards {
		d.shards[i].known = make(map[deniedID]refusal)
	}
	return d
}

// off says that nothing is ever remembered, and empty that nothing is at present.
func (d *denied) off() bool   { return d == nil }
func (d *denied) empty() bool { return d == nil || d.size.Load() == 0 }

// now is the time on the cache's clock.
func (d *denied) now() time.Duration { return time.Since(d.epoch) }

func (d *denied) place(p *store.Prepared, key string) (*deniedShard, deniedID) {
	id := deniedID{p, [2]uint64{maphash.String(d.seeds[0], key), maphash.String(d.seeds[1], key)}}
	return &d.shards[id.key[0]%deniedShards], id
}

// refuses finds a refusal of a check that still holds, and says what it comes to now. If
// it held until a moment ago, the request takes its turn to ask anew.
func (d *denied) refuses(c *store.Check, p *store.Prepared, now time.Duration, t *turn) (algorithms.Decision, bool) {
	shard, id := d.place(p, c.Key)
	shard.mu.Lock()
	r, ok := shard.known[id]
	over := ok && now >= r.until
	if over && c.Cost >= r.cost {
		t.take(shard, id, r, now, now-r.until <= d.moment)
	}
	shard.mu.Unlock()
	if !ok || over || !r.covers(c.Cost) {
		return algorithms.Decision{}, false
	}
	decision := r.at(now)
	if !decision.Banned && c.Cost > decision.Quota {
		decision.RetryAfter = algorithms.Never
	}
	return decision, true
}

// covers reports whether a refusal says all that there is to tell of a cost. More than what
// was refused is refused as well, but its wait may be longer: that is known only if it fits
// no quota, or if all of the quota comes back at once.
func (r *refusal) covers(cost int64) bool {
	d := &r.decision
	return cost == r.cost || d.Banned || cost > r.cost && (cost > d.Quota || d.RetryAfter == d.ResetAfter)
}

// at is the decision as it is told at a time: Redis decided before the answer was received,
// so told from then, no wait is too short.
func (r *refusal) at(now time.Duration) algorithms.Decision {
	d, elapsed := r.decision, now-r.received
	if d.RetryAfter != algorithms.Never {
		d.RetryAfter -= elapsed
	}
	d.NextAfter = max(0, d.NextAfter-elapsed)
	d.ResetAfter = max(0, d.ResetAfter-elapsed)
	d.At += elapsed.Microseconds()
	return d
}

// lately finds a refusal of a check that held until a moment before the request came, if
// nothing has been heard of the key since. What is told is to come again after a while.
func (d *denied) lately(c *store.Check, p *store.Prepared, came time.Duration) (algorithms.Decision, bool) {
	shard, id := d.place(p, c.Key)
	shard.mu.Lock()
	r, ok := shard.known[id]
	shard.mu.Unlock()
	if !ok || c.Cost < r.cost || came > max(r.received+d.most, r.until+d.moment) {
		return algorithms.Decision{}, false
	}
	decision := r.at(d.now())
	if decision.RetryAfter != algorithms.Never {
		decision.RetryAfter = max(decision.RetryAfter, d.moment)
	}
	decision.NextAfter = max(decision.NextAfter, d.moment)
	decision.ResetAfter = max(decision.ResetAfter, d.moment)
	return decision, true
}

// learn takes note of what Redis has decided on a check that was sent at a time. Charged
// says that its group was charged.
func (d *denied) learn(c *store.Check, p *store.Prepared, decision algorithms.Decision, charged bool, sent, now time.Duration) {
	r := refusal{cost: c.Cost, received: now, decision: decision}
	switch {
	case c.KeyRules != nil && c.KeyRules.Overrides:
		return // a setting holds from the next request on
	case decision.Banned:
		r.cost, r.decision.BanBegins = 0, false
	case c.KeyRules != nil && c.KeyRules.Ban != nil:
		return // each refusal counts towards a ban, so Redis is to see all of them
	case !decision.Allowed:
		if _, lends := c.Rule.Algorithm().(algorithms.Lender); lends {
			return
		}
	case charged && c.KeyRules == nil && decision.Remaining == 0 && decision.NextAfter > 0 && refusesWhenEmpty(c.Rule, p):
		// The last of the quota went to this one: nobody else gets any until there is more.
		r.cost, r.decision.Allowed, r.decision.RetryAfter = 1, false, decision.NextAfter
	default:
		return
	}
	r.until = sent + min(d.most, r.decision.RetryAfter)
	r.brief = r.until <= now
	shard, id := d.place(p, c.Key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	known, ok := shard.known[id]
	switch {
	case !ok:
		d.makeRoom(shard)
		d.size.Add(1)
	case now < known.until && (r.brief || known.cost < r.cost && known.covers(r.cost) || known.cost == r.cost && known.until > r.until):
		return // it refuses more, or is of a request that was sent later
	}
	shard.known[id] = r
}

// refusesWhenEmpty says that nothing but Remaining decides, so that where it is zero the
// next one is refused for exactly NextAfter.
func refusesWhenEmpty(rule *store.Rule, p *store.Prepared) bool {
	switch a := rule.Algorithm().(type) {
	case algorithms.Merger:
		return a.Merges(p.Params)
	case algorithms.Recorder:
		return true
	}
	return false
}

// makeRoom forgets some of a full shard. The lock is held.
func (d *denied) makeRoom(shard *deniedShard) {
	if len(shard.known) < maxDenied {
		return
	}
	forget := maxDenied / 16
	for id := range shard.known {
		delete(shard.known, id)
		d.size.Add(-1)
		if forget--; forget == 0 {
			return
		}
	}
}

// forget is for keys that have got something back.
func (d *denied) forget(p *store.Prepared, key string) {
	if d.empty() {
		return
	}
	shard, id := d.place(p, key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	d.discard(shard, id)
}

// drop is for keys that begin anew. A zone with plans, or with numbers out of the request,
// may have refused the key by another limit than this one; that is asked anew, too, and
// so is what other zones have refused, which cannot be told apart here.
func (d *denied) drop(p *store.Prepared, key string) {
	if d.empty() {
		return
	}
	shard, id := d.place(p, key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	for known := range shard.known {
		if known.key == id.key {
			d.discard(shard, known)
		}
	}
}

// discard has a refusal asked anew. The lock is held.
func (d *denied) discard(shard *deniedShard, id deniedID) {
	if _, ok := shard.known[id]; ok {
		delete(shard.known, id)
		d.size.Add(-1)
	}
}
