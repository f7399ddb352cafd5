// Package zone is a zone at run time: which requests it counts, under which key, and which limit
// and cost its policies choose for a request.
package zone

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/throttle"
	"github.com/seed-161337e5/caddyratelimit/limit"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Zone is a zone at run time: a Spec, what [New] makes of it, and what is counted of its requests.
type Zone struct {
	Spec

	OwnPolicies   Policies // of the zone's own limit
	Plans         map[string]*Plan
	planByName    map[string]*Plan // by normalized name, see PlanTemplate
	DefaultPlan   *Plan            // for requests without a plan; nil if these are rejected
	Policy        *QuotaPolicy     // nil if it depends on the request
	HasPolicies   bool             // Apply must be called for each request
	Exceeded      error            // the error of a refused request
	Description   string           // what all uses of the name share besides the key, in words
	enforceSeed   uint64           // of the hash that chooses for which keys the limit is enforced
	noKey, noPlan string           // what clients without a key or a plan are told

	Stats       *stats.Counters
	Misses      Misses             // requests that came to the zone and did not meet it
	Forwarded   clientip.Forwarded // by a proxy that is not trusted, in zones whose keys have the client's address
	Judged      judged
	invalid     throttle.Throttle // for warnings about requests without a valid limit
	UnclearCost throttle.Throttle // for warnings about responses without a valid cost
}

// New makes a zone of a Spec, which counts in the given counters. It returns an error if one of the limits is
// not valid.
func New(s Spec, counters *stats.Counters) (*Zone, error) {
	z := &Zone{
		Spec: s, Stats: counters, Exceeded: fmt.Errorf("rate limit of zone %q exceeded", s.Name), enforceSeed: xxhash.Sum64String(s.Name),
	}
	z.noKey, z.noPlan = s.describeRejections()
	if s.Lend == SuitableLend {
		z.Lend = s.suitableLend()
		s.Lend = z.Lend
	}
	if s.Plan == nil || s.MaxEvents != nil {
		var err error
		if z.OwnPolicies, err = NewPolicies(s.builder("", s.Limit)); err != nil {
			return nil, err
		}
	}
	z.Policy, z.HasPolicies = z.OwnPolicies.Fixed, s.looksAtRequests()
	if s.Plan != nil {
		z.Policy = nil
		if err := z.makePlans(); err != nil {
			return nil, err
		}
	}
	if s.Lend != 0 && z.CountsSlots() && !z.Prepays() {
		return nil, errors.New("lend has no meaning for algorithm concurrency: each request asks the store for its slot; leave it out")
	}
	z.Description = s.describe()
	return z, nil
}

// builder returns what makes the policies of a limit of the zone.
func (s *Spec) builder(plan string, l limit.Limit) PolicyBuilder {
	return PolicyBuilder{Zone: s.Name, Plan: plan, Limit: l, Salt: s.Salt, Lend: s.Lend}
}

// CountsSlots reports whether any of the zone's limits counts slots, which requests hold until they are
// over.
func (z *Zone) CountsSlots() bool {
	return slices.ContainsFunc(z.Rules(), func(r *store.Rule) bool { return limit.CountsSlots(r.Algorithm().Name()) })
}

// Prepays reports whether units of any of the zone's limits may be charged ahead.
func (z *Zone) Prepays() bool {
	return slices.ContainsFunc(z.Rules(), func(r *store.Rule) bool { return r.Hold() > 0 })
}

// SuitableLend is a Spec.Lend that suits the limits. All of them have the same one, because they may share states.
const SuitableLend time.Duration = -1

// suitableLend returns for how long units of each of the zone's limits may be held.
func (s *Spec) suitableLend() time.Duration {
	shortest := algorithms.MaxHold
	limits := slices.Collect(maps.Values(s.PlanLimits))
	if s.MaxEvents != nil {
		limits = append(limits, s.Limit)
	}
	for _, l := range limits {
		made, err := l.Resolve(l.Sample())
		a, failed := l.FindAlgorithm()
		if err == nil && failed == nil && !limit.CountsSlots(a.Name()) {
			shortest = min(shortest, algorithms.DefaultHold(a, made))
		}
	}
	return shortest
}

// nearLimit is the share of a limit that must be used for a request to count as near it, as in
// github.com/envoyproxy/ratelimit.
const nearLimit = 0.8

// IsNear reports whether a request that was allowed has brought its key near the limit.
func IsNear(d *algorithms.Decision) bool {
	return float64(d.Quota-d.Remaining) >= nearLimit*float64(d.Quota)
}

// LongestWait returns for how long the zone may hold a request, or 0 if it holds none. For a
// queue without a bound, that is the wait for its last place.
func (z *Zone) LongestWait() (wait time.Duration) {
	if z.DryRun {
		return 0
	}
	for _, l := range z.Limits() {
		wait = max(wait, time.Duration(l.MaxWait))
	}
	if p := z.Policy; wait == 0 && p != nil && p.Queues && p.Numbers.Events > 0 {
		wait = time.Duration(float64(p.Numbers.Window.Length()) * float64(p.Numbers.Burst) / float64(p.Numbers.Events))
	}
	return wait
}

// Waits reports whether any of the zone's limits can hold requests.
func (s *Spec) Waits() bool {
	return slices.ContainsFunc(s.Limits(), func(l *limit.Limit) bool { return l.MaxWait > 0 || l.Mode == algorithms.ModeQueue })
}

// judged counts the responses that charge on_response has judged since the config was loaded.
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
