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

	// MaxSize is the highest number of refusals that a cache remembers.
	MaxSize = shards * maxPerShard
)

// Cache remembers refusals. A refusal holds until its wait is over, whatever other requests
// do meanwhile, unless a charge is given back, the key is reset, or the limit is raised; for
// the sake of these it is remembered for maxTTL at most. That is exact for all algorithms
// but those that lend, whose slots come back at any time.
type Cache struct {
	maxTTL time.Duration
	recent time.Duration        // how long a refusal counts as just over
	clock  func() time.Duration // the time since an epoch of its own
	seeds  [2]maphash.Seed
	size   atomic.Int64
	hits   atomic.Int64
	large  atomic.Int64 // see Asks
	shards [shards]shard
}

type shard struct {
	mu       sync.Mutex
	size     int
	refusals map[id]*refusal // the first of a list
	overtake overtake
}

// id is a key under the limits of a family, which count in one state.
type id struct {
	states uint64
	key    [2]uint64
}

// maxLimits bounds the limits of a family under which refusals of a key are remembered: clients may choose
// the numbers of a limit.
const maxLimits = 8

// refusal is one that is remembered. Its times are since the epoch of the cache.
type refusal struct {
	next     *refusal        // of the same key, under another limit of the family
	prepared *store.Prepared // the limit: another one may decide otherwise
	cost     int64           // this cost is refused, and larger ones are
	until    time.Duration   // counted from when the request was sent
	received time.Duration
	decision algorithms.Decision
	landed   *landing      // see Flight
	brief    bool          // it was over when it was received, so it makes no flights
	asks     bool          // each request is to ask Redis, so it is only known to Recent
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

// Hit counts a request that needed no call, and Hits is their number.
func (c *Cache) Hit() { c.hits.Add(1) }

// Hits returns how many requests needed no call.
func (c *Cache) Hits() uint64 {
	return uint64(c.hits.Load())
}

func (c *Cache) place(rule *store.Rule, key string) (*shard, id) {
	i := id{rule.States().Hash, [2]uint64{maphash.String(c.seeds[0], key), maphash.String(c.seeds[1], key)}}
	return &c.shards[i.key[0]%shards], i
}

// Get returns a refusal of a check that still holds, as of now. If the refusal held until a moment
// ago, the request joins the flight of requests that ask Redis again.
func (c *Cache) Get(check *store.Check, p *store.Prepared, now time.Duration, f *Flight) (algorithms.Decision, bool) {
	shard, id := c.place(check.Rule, check.Key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	r := shard.about(check, id, p)
	if r == nil || r.asks {
		return algorithms.Decision{}, false
	}
	over := now >= r.until
	if over && check.Cost >= r.cost {
		f.join(shard, id, r, now, now-r.until <= c.recent)
	}
	if over || !r.covers(check.Cost) {
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
	shard, id := c.place(check.Rule, check.Key)
	shard.mu.Lock()
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
		r.asks, r.decision.BanBegins = asks(check, &decision), false
		if decision.Banned {
			r.cost = 0
		}
	case charged && check.KeyRules == nil && decision.Remaining == 0 && decision.NextAfter > 0 && refusesWhenEmpty(check.Rule, p):
		// The last of the quota went to this request: no other gets any until there is more.
		r.cost, r.decision.Allowed, r.decision.RetryAfter = 1, false, decision.NextAfter
	default:
		if c.size.Load() > 0 || charged && c.large.Load() > 0 {
			c.outdate(check, p, &decision, charged, now)
		}
		return
	}
	if !r.asks {
		r.until = sent + min(c.maxTTL, r.decision.RetryAfter)
	}
	r.recent = now + max(c.maxTTL, min(recentTTL*c.maxTTL, r.decision.RetryAfter))
	r.brief = r.until <= now
	shard, id := c.place(check.Rule, check.Key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	known := shard.find(id, p)
	switch {
	case charged:
		c.noteCharge(shard, id, p, &decision, now)
	case !r.asks && shard.overtake.by(id, &r, sent):
		if known != nil && now < known.until {
			return // it is of the charge that came after this one
		}
		r.asks, r.until = true, 0
	}
	switch {
	case known == nil:
		c.makeRoom(shard, id)
		known = new(refusal)
		r.next, shard.refusals[id] = shard.refusals[id], known
		shard.size++
		c.size.Add(1)
	case now < known.until && (r.brief || known.cost < r.cost && known.covers(r.cost) || known.cost == r.cost && known.until > r.until):
		return // it refuses more, or is of a request that was sent later
	default:
		r.next = known.next
	}
	*known = r
}

// find returns the refusal of a key under a limit, or nil. The lock is held.
func (s *shard) find(id id, p *store.Prepared) *refusal {
	r := s.refusals[id]
	for r != nil && r.prepared != p {
		r = r.next
	}
	return r
}

// about is find for a check. A ban says nothing about a check of a zone that does not ban, or does not any more. The
// lock is held.
func (s *shard) about(check *store.Check, id id, p *store.Prepared) *refusal {
	r := s.find(id, p)
	if r != nil && r.decision.Banned && check.KeyRules == nil {
		return nil
	}
	return r
}

// charged has requests under the other limits of a family ask: what was charged under this one makes their waits
// longer. Requests that get no answer still know the refusals. The lock is held.
func (s *shard) charged(id id, p *store.Prepared) {
	for r := s.refusals[id]; r != nil; r = r.next {
		if r.prepared != p && !r.decision.Banned {
			r.asks, r.until = true, 0
		}
	}
}

// asks reports whether the next request must ask Redis although this one was refused: an override holds from
// the next request on, each refusal counts towards a ban, and slots come back at any time.
func asks(check *store.Check, d *algorithms.Decision) bool {
	_, leases := check.Rule.Algorithm().(algorithms.Leaser)
	rules := check.KeyRules
	return rules != nil && rules.Overrides || !d.Banned && (leases || rules != nil && rules.Ban != nil)
}

// outdate forgets the refusal of a larger cost if a charge came after it, or has left less than there was then: it still holds, but
// for longer. A refusal that only Recent knows is over with the first request that may pass.
func (c *Cache) outdate(check *store.Check, p *store.Prepared, allowed *algorithms.Decision, charged bool, now time.Duration) {
	shard, id := c.place(check.Rule, check.Key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if charged {
		c.noteCharge(shard, id, p, allowed, now)
	}
	r := shard.find(id, p)
	if r == nil {
		return
	}
	after := allowed.At > r.decision.At || allowed.Remaining < r.decision.Remaining
	if less := charged && now < r.until && !r.decision.Banned && after; r.asks || less {
		c.delete(shard, id, r)
	}
}

// refusesWhenEmpty reports whether nothing but Remaining decides, so that where it is zero the
// next request is refused for exactly NextAfter.
func refusesWhenEmpty(rule *store.Rule, p *store.Prepared) bool {
	switch a := rule.Algorithm().(type) {
	case algorithms.Merger:
		return a.Merges(p.Params)
	case algorithms.Recorder:
		return true
	}
	return false
}

// makeRoom forgets the oldest refusal of a key with too many, and some of a full shard. The lock is held.
func (c *Cache) makeRoom(shard *shard, id id) {
	n, last := 0, (*refusal)(nil)
	for r := shard.refusals[id]; r != nil; r = r.next {
		n, last = n+1, r
	}
	if n >= maxLimits {
		c.delete(shard, id, last)
	}
	if shard.size < maxPerShard {
		return
	}
	for id := range shard.refusals {
		if c.deleteAll(shard, id); shard.size <= maxPerShard-maxPerShard/16 {
			return
		}
	}
}

// Charge tells that a key is charged a late cost, which makes the waits of its refusals longer.
func (c *Cache) Charge(rule *store.Rule, key string) {
	c.change(rule, key, func(s *shard, id id) { s.charged(id, nil) })
}

// Delete forgets what limits have refused to a key that count in a rule's states, because the key has got
// something back.
func (c *Cache) Delete(rule *store.Rule, key string) { c.change(rule, key, c.deleteAll) }

// DeleteKey forgets the refusals of a key that begins from zero, under all limits, because a zone with
// plans or placeholders may have refused the key under another limit than this one. It also
// forgets refusals of other zones, because the cache cannot distinguish them.
func (c *Cache) DeleteKey(rule *store.Rule, key string) {
	c.change(rule, key, func(s *shard, id id) {
		for known := range s.refusals {
			if known.key == id.key {
				c.deleteAll(s, known)
			}
		}
	})
}

// change changes what is remembered of a key, if anything is remembered at all.
func (c *Cache) change(rule *store.Rule, key string, do func(*shard, id)) {
	if c.Empty() {
		return
	}
	shard, id := c.place(rule, key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	do(shard, id)
}

// delete forgets a refusal that is there. The lock is held.
func (c *Cache) delete(shard *shard, id id, gone *refusal) {
	first := shard.refusals[id]
	if first == gone {
		first = gone.next
	}
	for r := first; r != nil; r = r.next {
		if r.next == gone {
			r.next = gone.next
		}
	}
	if shard.refusals[id] = first; first == nil {
		delete(shard.refusals, id)
	}
	shard.size--
	c.size.Add(-1)
}

// deleteAll forgets all refusals of a key under the limits of a family. The lock is held.
func (c *Cache) deleteAll(shard *shard, id id) {
	for r := shard.refusals[id]; r != nil; r = r.next {
		shard.size--
		c.size.Add(-1)
	}
	delete(shard.refusals, id)
}
