// Package zone is a zone at run time: which requests it counts, under which key, and which limit
// and cost its policies choose for a request.
package zone

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/request/key"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/throttle"
	"github.com/seed-161337e5/caddyratelimit/internal/usage"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Zone is a zone at run time: its config, where it is, what [New] makes of them, and what is counted of its requests.
type Zone struct {
	config.Zone // with the defaults filled in
	Place

	Template     *key.Template   // of the key
	PlanTemplate *key.Template   // the name of a request's plan
	Hold         time.Duration   // for how long units may be held: see [algorithms.Limit]
	KeyRules     *store.KeyRules // overrides and bans of single keys; nil without them
	fields       *usage.Texts    // of JSON bodies, that options look at; nil if none does
	readsAll     bool            // options other than matchers do, so the body of each request is read
	costOfBody   bool            // clients say the cost in their bodies
	steps        []step          // of requests

	matching, blocking, exempting sides

	Own         *Plan            // the zone's own limit; nil if only plans have limits
	Plans       []*Plan          // by name; nil without plans
	planByName  map[string]*Plan // by normalized name, see PlanTemplate
	DefaultPlan *Plan            // for requests without a plan; nil if these are rejected
	Policy      *QuotaPolicy     // nil if it depends on the request
	likely      *QuotaPolicy     // one of them
	Exceeded    error            // the error of a refused request
	Description string           // what all uses of the name share besides the key, in words
	enforceSeed uint64           // of the hash that chooses for which keys the limit is enforced
	Challenge   string           // for requests without a key; empty if there is none

	Stats        *stats.Counters
	Missed       stats.Few          // requests that came to the zone and did not meet it
	Forwarded    clientip.Forwarded // by a proxy that is not trusted, in zones whose keys have the client's address
	Judged       judged
	InvalidLimit throttle.Throttle // for warnings about requests without a valid limit
	UnclearCost  throttle.Throttle // for warnings about responses without a valid cost
}

// New makes a zone of its config, which counts in the given counters. It returns an error if the config is not valid.
func New(c *config.Zone, at Place, counters *stats.Counters) (*Zone, error) {
	z := &Zone{
		Zone: *c, Place: at, Stats: counters, Exceeded: fmt.Errorf("rate limit of zone %q exceeded", at.Name), enforceSeed: xxhash.Sum64String(at.Name),
	}
	z.OnStoreError = cmp.Or(z.OnStoreError, at.OnError, config.AllowOnError)
	if at.Name == "" {
		return nil, errors.New("a zone needs a name")
	}
	if err := z.makeTemplates(); err != nil {
		return nil, err
	}
	if err := z.Compile(z.Template.Varies(), func(name string) string { return z.PlanTemplate.NormalizeName(name) }); err != nil {
		return nil, err
	}
	z.KeyRules = z.Zone.KeyRules()
	z.Hold = z.hold()
	if err := z.findFields(); err != nil {
		return nil, err
	}
	if err := z.makePolicies(); err != nil {
		return nil, err
	}
	z.makeSteps()
	z.Description = z.describe()
	return z, nil
}

// Copy returns a zone that decides like this one, and has counters of its own.
func (z *Zone) Copy() (*Zone, error) { return z.With(z.Limit) }

// With returns a copy of the zone that has another limit of its own. Plans keep what they take from the zone's own.
func (z *Zone) With(l config.Limit) (*Zone, error) {
	c := z.Zone
	c.Limit = l
	return New(&c, z.Place, new(stats.Counters))
}

// makePolicies makes the quota policies of the zone and its plans.
func (z *Zone) makePolicies() (err error) {
	if z.Plan == nil || z.MaxEvents != nil {
		if z.Own, err = z.newPlan("", z.Limit); err != nil {
			return err
		}
	}
	if z.Plan == nil {
		z.Policy = z.Own.Fixed()
	} else if err := z.makePlans(); err != nil {
		return err
	}
	for _, p := range z.allPlans() {
		z.likely = cmp.Or(z.likely, p.Likely)
	}
	if z.Hold != 0 && z.CountsSlots() && !z.Prepays() {
		return errors.New("lend has no meaning for algorithm concurrency: each request asks the store for its slot; leave it out")
	}
	return nil
}

// CountsSlots reports whether any of the zone's limits counts slots, which requests hold until they are
// over.
func (z *Zone) CountsSlots() bool {
	return slices.ContainsFunc(z.Rules(), func(r *store.Rule) bool { return config.CountsSlots(r.Algorithm().Name()) })
}

// Prepays reports whether units of any of the zone's limits may be charged ahead.
func (z *Zone) Prepays() bool {
	return slices.ContainsFunc(z.Rules(), func(r *store.Rule) bool { return r.Hold() > 0 })
}

// hold returns for how long units of the zone's limits may be held: 0 if none may, and what suits all of them if the option
// lend does not say. All of them have the same one, because they may share states.
func (z *Zone) hold() time.Duration {
	switch {
	case z.Lend == nil:
		return 0
	case *z.Lend != 0:
		return time.Duration(*z.Lend)
	}
	shortest := algorithms.MaxHold
	for _, l := range z.Limits() {
		a, err := l.FindAlgorithm()
		if err != nil || l.Check() != nil || config.CountsSlots(a.Name()) {
			continue
		}
		if made, err := l.Resolve(l.Sample()); err == nil {
			shortest = min(shortest, algorithms.DefaultHold(a, made))
		}
	}
	return shortest
}

// nearLimit is the share of a limit that must be used for a request to count as near it, as in
// github.com/envoyproxy/ratelimit.
const nearLimit = 0.8

// IsNear reports whether a request that was allowed has brought its key near the limit.
func (c *Check) IsNear() bool {
	d := &c.Decision
	return c.Cost > 0 && float64(d.Quota-d.Remaining) >= nearLimit*float64(d.Quota)
}

// Waits reports whether any of the zone's limits can hold requests.
func (z *Zone) Waits() bool {
	return z.HasLimit(func(l *config.Limit) bool { return l.Wait() > 0 || l.Mode == algorithms.ModeQueue })
}

// judged counts the responses that charge has judged since the config was loaded.
type judged struct{ all, charged, last atomic.Uint64 }

// Count counts a response.
func (j *judged) Count(status int, charged bool) {
	j.all.Add(1)
	j.last.Store(uint64(status))
	if charged {
		j.charged.Add(1)
	}
}

// Read returns how many responses there were, how many of them were charged, and the status of the last one.
func (j *judged) Read() (all, charged uint64, last int) {
	return j.all.Load(), j.charged.Load(), int(j.last.Load())
}
