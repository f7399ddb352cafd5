package caddyratelimit

import (
	"fmt"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/limit"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// grant is what a zone grants a request: a limit made ready, and what follows from it.
// It does not change.
type grant struct {
	rule    *store.Rule
	numbers limit.Numbers
	plan    string        // the zone's name for it; empty without plans
	lends   bool          // the algorithm's charges are held until the request is over
	queues  bool          // the store tells each request how long to wait
	maxWait time.Duration // instead of being refused
	quota   int64         // what a client may hold at once
	others  *grant        // of those for whom no slots are reserved; nil if none are

	shown     string // the zone's name as header fields can have it
	policy    string // item of RateLimit-Policy
	item      string // begin of the item of RateLimit
	replenish string // events per second
}

// granting is how the grants of a zone, or of one of its plans, are made.
type granting struct {
	zone, plan string
	limit      limit.Limit
	salt       uint64
	reserve    float64 // percent of the slots; 0: none
}

// grant makes one.
func (m *granting) grant(n limit.Numbers) (*grant, error) {
	limit, err := m.limit.Resolve(n)
	if err != nil {
		if from := m.limit.Zone().From; from != "" && n.Timezone != m.limit.Zone().Name {
			err = fmt.Errorf("timezone: {%s} is none", from) // what it has instead may be secret
		}
		return nil, err
	}
	g, err := m.of(limit, n)
	if err == nil && m.reserve > 0 && g.lends {
		limit.Events = leave(limit.Events, m.reserve)
		g.others, err = m.of(limit, n)
	}
	return g, err
}

func (m *granting) of(made algorithms.Limit, n limit.Numbers) (*grant, error) {
	counting, err := m.limit.Counting()
	if err != nil {
		return nil, err
	}
	rule, err := store.NewRule(m.zone, counting, made, m.salt)
	if err != nil {
		return nil, err
	}
	g := &grant{
		rule: rule, numbers: n, plan: m.plan, maxWait: made.MaxWait, quota: made.Events,
		lends: limit.Lends(m.limit.Algorithm), queues: made.Mode == algorithms.ModeQueue,
	}
	if made.Burst > 0 && made.Events > 0 {
		g.quota = made.Burst
	}
	g.prepareHeaders()
	return g, nil
}

// grants is where a request's grant comes from: fixed is for all requests, or varying
// makes one of what the request brings.
type grants struct {
	likely  *grant // one of them; nil if there are none
	fixed   *grant
	varying *varying
}

// newGrants checks a limit and makes it ready.
func newGrants(m granting) (g grants, err error) {
	if err := m.limit.Check(); err != nil {
		return g, err
	}
	first, err := m.grant(m.limit.Likely())
	if err != nil {
		return g, err
	}
	if !m.limit.Varies() {
		return grants{likely: first, fixed: first}, nil
	}
	return grants{likely: first, varying: &varying{granting: m, seed: maphash.MakeSeed()}}, nil
}

func (g *grants) of(repl *caddy.Replacer) (*grant, error) {
	if g.varying == nil {
		return g.fixed, nil
	}
	return g.varying.of(repl)
}

// scatter reports whether requests can bring limits that count apart from the likely one.
func (g *grants) scatter() bool {
	if g.varying == nil {
		return false
	}
	other, err := g.varying.grant(g.varying.limit.Unlikely())
	return err != nil || other.rule.ID() != g.likely.rule.ID()
}

const (
	// grantSlots bounds the grants that are kept ready for a limit that varies.
	grantSlots = 256

	// grantProbes is how many of them a grant may stand in.
	grantProbes = 4
)

// varying makes grants of what requests bring, and keeps those that were used last. The
// numbers may be chosen by clients: a million different ones take no more memory, and
// cost no more than making each anew.
type varying struct {
	granting
	seed  maphash.Seed
	slots [grantSlots]atomic.Pointer[grant]
}

func (v *varying) of(repl *caddy.Replacer) (*grant, error) {
	n, err := v.limit.Numbers(repl)
	if err != nil {
		return nil, err
	}
	hash := maphash.Comparable(v.seed, n)
	put := &v.slots[(hash+hash>>32%grantProbes)%grantSlots]
	for i := range uint64(grantProbes) {
		slot := &v.slots[(hash+i)%grantSlots]
		g := slot.Load()
		if g == nil {
			put = slot
			break
		}
		if g.numbers == n {
			return g, nil
		}
	}
	g, err := v.grant(n)
	if err == nil {
		put.Store(g)
	}
	return g, err
}

// most is the largest cost that can ever be granted.
func (g *grant) most() int64 {
	if g.lends {
		return min(g.quota, algorithms.MaxHold)
	}
	return g.quota
}
