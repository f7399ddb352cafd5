package refusals

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	shards = 64

	// maxPerShard bounds the refusals of a shard. Beyond it some are forgotten: their keys
	// cost a call of Redis, and no request passes that should not.
	maxPerShard = 1024
)

// Cache remembers refusals. A refusal holds as long as nothing can be charged to its key, whatever other requests do, unless a
// charge is given back, the key is reset, or the limit is raised; for the sake of these it is remembered for maxTTL at most. Other
// refusals are known only to requests that get no answer.
type Cache struct {
	maxTTL time.Duration
	recent time.Duration        // how long a refusal counts as just over
	clock  func() time.Duration // the time since an epoch of its own
	seeds  [2]maphash.Seed
	size   atomic.Int64
	hits   atomic.Uint64
	shards [shards]shard
}

type shard struct {
	mu       sync.Mutex
	refusals map[id]*refusal
}

// id is a key under the limits of a family, which count in one state. The last refusal by one of them is remembered.
type id struct {
	states uint64
	key    [2]uint64
}

// refusal is one that is remembered. Its times are since the epoch of the cache.
type refusal struct {
	prepared *store.Prepared // the limit: another one may decide otherwise
	cost     int64           // this cost is refused, and larger ones are
	until    time.Duration   // counted from when the request was sent; 0 if each request is to ask
	received time.Duration
	decision algorithms.Decision
	recent   time.Duration // until when Recent knows it
}

// NewCache makes a cache that remembers a refusal for maxTTL at most.
// A refusal counts as just over for the time recent.
func NewCache(maxTTL, recent time.Duration) *Cache {
	epoch := time.Now()
	c := &Cache{maxTTL: maxTTL, recent: recent, clock: func() time.Duration { return time.Since(epoch) }, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
	for i := range c.shards {
		c.shards[i].refusals = make(map[id]*refusal)
	}
	return c
}

// Empty reports whether nothing is remembered at present.
func (c *Cache) Empty() bool { return c.size.Load() == 0 }

// Now returns the time on the cache's clock.
func (c *Cache) Now() time.Duration { return c.clock() }

// Size returns how many refusals are remembered.
func (c *Cache) Size() int { return int(c.size.Load()) }

// Hits returns how many requests needed no call.
func (c *Cache) Hits() uint64 { return c.hits.Load() }

// lock locks the shard of a key, and returns the ID under which a refusal of it is.
func (c *Cache) lock(rule *store.Rule, key string) (*shard, id) {
	i := id{rule.States().Hash, [2]uint64{maphash.String(c.seeds[0], key), maphash.String(c.seeds[1], key)}}
	s := &c.shards[i.key[0]%shards]
	s.mu.Lock()
	return s, i
}

// Get returns a refusal of a check that still holds, as of now.
func (c *Cache) Get(check *store.Check, p *store.Prepared, now time.Duration) (algorithms.Decision, bool) {
	shard, id := c.lock(check.Rule, check.Key)
	defer shard.mu.Unlock()
	r := shard.about(check, id, p)
	if r == nil || now >= r.until || !r.covers(check.Cost) {
		return algorithms.Decision{}, false
	}
	return r.at(now, check.Cost), true
}

// covers reports whether a refusal is enough to decide a cost. A larger cost than the refused one
// is refused, too, but its wait may be longer. That wait is known only if the cost is above the
// quota, or if all of the quota comes back at once.
func (r *refusal) covers(cost int64) bool {
	d := &r.decision
	return cost == r.cost || d.Banned || cost > r.cost && (cost > d.Quota || d.RetryAfter == d.ResetAfter)
}

// at returns the decision about a cost as of a time. Redis decided before the reply was received, so a wait
// counted from the reply is never too short.
func (r *refusal) at(now time.Duration, cost int64) algorithms.Decision {
	d, elapsed := r.decision, now-r.received
	switch {
	case !d.Banned && cost > d.Quota:
		d.RetryAfter = algorithms.Never
	case d.RetryAfter != algorithms.Never:
		d.RetryAfter -= elapsed
	}
	d.NextAfter = max(0, d.NextAfter-elapsed)
	d.ResetAfter = max(0, d.ResetAfter-elapsed)
	d.At += elapsed.Microseconds()
	return d
}

// recentTTL is for how many times maxTTL Recent knows a refusal whose wait is as long. Only a reset, a refund or a
// higher limit could have ended it since, and without it nothing would be known of the key.
const recentTTL = 10

// Recent returns a refusal of a check that held until a moment before the request came, if nothing
// newer is known of the key, for a request that gets no answer. Its wait is a short one.
func (c *Cache) Recent(check *store.Check, p *store.Prepared, came time.Duration) (algorithms.Decision, bool) {
	shard, id := c.lock(check.Rule, check.Key)
	defer shard.mu.Unlock()
	r := shard.about(check, id, p)
	if r == nil || check.Cost < r.cost || came > max(r.recent, r.until+c.recent) {
		return algorithms.Decision{}, false
	}
	decision := r.at(c.Now(), check.Cost)
	if decision.RetryAfter != algorithms.Never {
		decision.RetryAfter = max(decision.RetryAfter, c.recent)
	}
	decision.NextAfter = max(decision.NextAfter, c.recent)
	decision.ResetAfter = max(decision.ResetAfter, c.recent)
	return decision, true
}

// Put remembers what Redis has decided on a check that was sent at a time, if that is a
// refusal, or if the next request will be refused. Charged says that the check's group was
// charged.
func (c *Cache) Put(check *store.Check, p *store.Prepared, decision algorithms.Decision, charged bool, sent, now time.Duration) {
	r := refusal{prepared: p, cost: check.Cost, received: now, decision: decision}
	switch {
	case !decision.Allowed:
		r.decision.BanBegins = false
		if decision.Banned {
			r.cost = 0
		}
	case charged && check.KeyRules == nil && decision.Remaining == 0 && decision.NextAfter > 0 && refusesWhenEmpty(check.Rule, p):
		// The last of the quota went to this request: no other gets any until there is more.
		r.cost, r.decision.Allowed, r.decision.RetryAfter = 1, false, decision.NextAfter
	default:
		c.passed(check, p, &decision, charged, now)
		return
	}
	if lasts := r.lasts(check); lasts > 0 {
		r.until = sent + min(c.maxTTL, lasts)
	}
	r.recent = now + max(c.maxTTL, min(recentTTL*c.maxTTL, r.decision.RetryAfter))
	shard, id := c.lock(check.Rule, check.Key)
	defer shard.mu.Unlock()
	known := shard.refusals[id]
	switch {
	case known == nil:
		c.makeRoom(shard)
		known = new(refusal)
		shard.refusals[id] = known
		c.size.Add(1)
	case known.prepared == p && now < known.until && known.refusesMore(&r, now):
		return
	}
	*known = r
}

// lasts returns for how long nothing can be charged to the key that is refused; 0 if that may change at once: an override holds
// from the next request on, each refusal counts towards a ban, slots come back at any time, and a smaller cost may pass.
func (r *refusal) lasts(check *store.Check) time.Duration {
	_, leases := check.Rule.Algorithm().(algorithms.Leaser)
	d, rules := &r.decision, check.KeyRules
	switch {
	case rules != nil && rules.Overrides, !d.Banned && (leases || rules != nil && rules.Ban != nil):
		return 0
	case d.Banned, r.cost == 1, r.cost > d.Quota:
		return d.RetryAfter
	case d.Remaining == 0:
		return min(d.RetryAfter, d.NextAfter)
	}
	return 0
}

// refusesMore reports whether a refusal that holds says more than another one, or is of a request that was sent later.
func (r *refusal) refusesMore(other *refusal, now time.Duration) bool {
	return r.cost <= other.cost && (other.until <= now || r.until > other.until || r.cost < other.cost && r.covers(other.cost))
}

// about returns the refusal of a check, or nil. A ban says nothing about a check of a zone that does not ban, or does not any
// more. The lock is held.
func (s *shard) about(check *store.Check, id id, p *store.Prepared) *refusal {
	r := s.refusals[id]
	if r == nil || r.prepared != p || r.decision.Banned && check.KeyRules == nil {
		return nil
	}
	return r
}

// passed learns that a check may pass, or was charged: then something was given back meanwhile, or another limit of the family makes
// the wait longer, which requests that get no answer still know.
func (c *Cache) passed(check *store.Check, p *store.Prepared, d *algorithms.Decision, charged bool, now time.Duration) {
	if c.Empty() {
		return
	}
	shard, id := c.lock(check.Rule, check.Key)
	defer shard.mu.Unlock()
	switch r := shard.refusals[id]; {
	case r == nil:
	case r.prepared == p && (now >= r.until || charged && d.At > r.decision.At && !r.decision.Banned):
		c.delete(shard, id)
	case r.prepared != p && charged:
		r.outdate()
	}
}

// outdate has requests ask again, because something was charged that makes the wait longer. Those that get no answer still know
// the refusal. A ban does not change.
func (r *refusal) outdate() {
	if !r.decision.Banned {
		r.until = 0
	}
}

// refusesWhenEmpty reports whether nothing but Remaining decides, so that where it is zero the
// next request is refused for exactly NextAfter.
func refusesWhenEmpty(rule *store.Rule, p *store.Prepared) bool {
	switch a := rule.Algorithm().(type) {
	case algorithms.Counter:
		return a.Merges(p.Params)
	case algorithms.Recorder:
		return true
	}
	return false
}

// makeRoom forgets some of a full shard. The lock is held.
func (c *Cache) makeRoom(shard *shard) {
	if len(shard.refusals) < maxPerShard {
		return
	}
	for id := range shard.refusals {
		if c.delete(shard, id); len(shard.refusals) <= maxPerShard-maxPerShard/16 {
			return
		}
	}
}

// Adjusted learns that a charge was changed: what a key gets back may end its refusal, and a late cost makes the wait longer.
func (c *Cache) Adjusted(a *store.Adjustment) {
	if c.Empty() {
		return
	}
	shard, id := c.lock(a.Rule, a.Key)
	defer shard.mu.Unlock()
	if a.Delta < 0 {
		c.delete(shard, id)
	} else if r := shard.refusals[id]; r != nil && a.Delta > 0 {
		r.outdate()
	}
}

// DeleteKey forgets the refusals of a key that begins from zero, under all limits, because a zone with
// plans or placeholders may have refused the key under another limit than this one. It also
// forgets refusals of other zones, because the cache cannot distinguish them.
func (c *Cache) DeleteKey(rule *store.Rule, key string) {
	if c.Empty() {
		return
	}
	shard, id := c.lock(rule, key)
	defer shard.mu.Unlock()
	for known := range shard.refusals {
		if known.key == id.key {
			c.delete(shard, known)
		}
	}
}

// delete forgets the refusal of a key, if there is one. The lock is held.
func (c *Cache) delete(shard *shard, id id) {
	if shard.refusals[id] != nil {
		delete(shard.refusals, id)
		c.size.Add(-1)
	}
}
