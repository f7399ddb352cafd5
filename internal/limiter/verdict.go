package limiter

import (
	"net/http"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/feed"
	"github.com/seed-161337e5/caddyratelimit/internal/late"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Verdict is the decision on a request. Other packages only read it, and must not use it after
// Release.
type Verdict struct {
	// Err is set if the request cannot be decided, because a matcher failed or the client's
	// address is not certain yet. It has a status for Caddy's error routes.
	Err error

	// Rejections are the refusals of zones that did not ask the store. All but the last one are
	// dry runs, and the last one may be one.
	Rejections []Refusal

	// Outcome is the outcome of the request if no limit refuses it: Allowed; Local if the store
	// has not decided; FailedOpen, FailedClosed or Abandoned if no zone has.
	Outcome outcome.Outcome

	// Busy says that the store has not decided because this process was too busy to ask.
	Busy bool

	// Unstarted says that no store was asked because the config has not started.
	Unstarted bool

	// Entries are the zones that asked the store. Checks and Decisions have, at the same index,
	// what they asked and what was decided. The first Enforced entries may refuse the request;
	// the others are dry runs.
	Entries   []Entry
	Checks    []store.Check
	Decisions []algorithms.Decision
	Enforced  int

	// Binding is the enforced entry that binds the client most. It refuses if Refused is true.
	Binding int
	Refused bool

	// Near says that the request has brought a key near the limit of an enforced zone.
	Near bool

	Request placeholder.Request

	check      zone.Check // of the zone that the request meets
	witness    Witness
	wait       retryWait
	leases     bool          // whether a charge lasts until the request is over
	late       bool          // whether a charge depends on the response
	asked      time.Duration // when the store was first asked, if a charge depends on the response
	strips     []string      // headers that the client must not see
	completion *late.Completion
}

// Entry is a zone that was asked about a request.
type Entry struct {
	Zone    *zone.Zone
	Policy  *zone.QuotaPolicy // the limit that holds for the request
	Outcome outcome.Outcome
}

// Refusal is the refusal of one zone. That of a dry run has no effect on the request.
type Refusal struct {
	Zone   *zone.Zone
	Key    string
	DryRun bool

	// Err is the reason. Status is 0 except for refusals without a limit.
	Err    error
	Status int

	// Policy is the limit that refuses, and Decision its decision on Cost. Policy is nil if the store
	// was not asked, unless a network is banned.
	Policy   *zone.QuotaPolicy
	Decision algorithms.Decision
	Cost     int64
}

// Outcome returns the outcome of a refusal for which the store was not asked. With a Policy it is the ban of a network.
func (f *Refusal) Outcome() outcome.Outcome {
	switch {
	case f.DryRun:
		return outcome.DryRun
	case f.Policy != nil:
		return zone.RefusalOutcome(&f.Decision)
	}
	return outcome.Rejected
}

// Waits are the times that follow from the decision of the limit. There must be one.
func (f *Refusal) Waits() zone.Waits { return f.Policy.Waits(&f.Decision, f.Cost) }

// NeverPasses reports whether the reason is a cost above the limit, so that no wait is long enough.
func (f *Refusal) NeverPasses() bool { return f.Policy != nil && zone.NeverPasses(&f.Decision, f.Cost) }

// BanLasts returns how long a ban lasts at most that begins with the refusal. A decision has the wait for the limit if that is longer.
func (f *Refusal) BanLasts() time.Duration {
	ban := f.Zone.KeyRules.Ban
	return min(f.Decision.RetryAfter, max(ban.For, ban.UpTo))
}

var verdicts = sync.Pool{New: func() any { return new(Verdict) }}

func newVerdict(l *Limiter, r *http.Request) *Verdict {
	v := verdicts.Get().(*Verdict)
	v.Request = placeholder.RequestOf(r)
	v.wait.clock, v.witness = l.Clock, l.Witness
	return v
}

// Release frees the verdict for another request. It returns what must be done when a request that
// passes is over, or nil if that is nothing.
func (v *Verdict) Release() *late.Completion {
	c := v.completion
	if c == nil && len(v.strips) > 0 && v.Passes() {
		c = late.New(v.strips, pool.Session{}, nil)
	}
	v.reset()
	verdicts.Put(v)
	return c
}

// reset makes the verdict empty. It keeps room for the next request, and what is in the first place of
// each list until then: one field after the other costs less than all while garbage is collected.
func (v *Verdict) reset() {
	v.Err, v.Outcome, v.Busy, v.Unstarted = nil, 0, false, false
	v.Rejections, v.Entries, v.Checks, v.Decisions = emptied(v.Rejections), emptied(v.Entries), emptied(v.Checks), v.Decisions[:0]
	v.Enforced, v.Binding, v.Refused, v.Near = 0, 0, false, false
	v.Request, v.check = placeholder.Request{}, zone.Check{}
	v.wait, v.witness = retryWait{}, nil
	v.leases, v.late, v.asked, v.strips, v.completion = false, false, 0, nil, nil
}

func emptied[T any](list []T) []T {
	if len(list) > 1 {
		clear(list[1:])
	}
	return list[:0]
}

// Passes reports whether the request reaches the next handlers.
func (v *Verdict) Passes() bool {
	return v.Err == nil && v.Rejected() == nil && !v.Refused && v.Outcome.Passes()
}

// Rejected returns the refusal of an enforced zone that did not ask the store; nil if there is
// none.
func (v *Verdict) Rejected() *Refusal {
	if n := len(v.Rejections); n > 0 && !v.Rejections[n-1].DryRun {
		return &v.Rejections[n-1]
	}
	return nil
}

// Refusal describes the refusal of an entry.
func (v *Verdict) Refusal(i int) Refusal {
	return Refusal{
		Zone: v.Entries[i].Zone, Key: v.Checks[i].Key, DryRun: i >= v.Enforced, Err: v.Entries[i].Zone.Exceeded,
		Policy: v.Entries[i].Policy, Decision: v.Decisions[i], Cost: v.Checks[i].Cost,
	}
}

// mostBinding returns the entry that binds the client most: the refusal with the longest wait or, if
// none of the entries refuses, the entry with the smallest share of its quota left.
func (v *Verdict) mostBinding(from, to int) (index int, refused bool) {
	return v.mostBindingOf(from, to, nil)
}

// BindingAmong returns the enforced entry that binds the client most, of those of some zones. It is -1 if there are none.
func (v *Verdict) BindingAmong(counts func(*zone.Zone) bool) int {
	for i := range v.Enforced {
		if counts(v.Entries[i].Zone) {
			index, _ := v.mostBindingOf(i, v.Enforced, counts)
			return index
		}
	}
	return -1
}

// BindingDryRun returns the dry run that would bind the client most. There must be one.
func (v *Verdict) BindingDryRun() int {
	index, _ := v.mostBinding(v.Enforced, len(v.Entries))
	return index
}

// mostBindingOf is mostBinding for the entries of some zones, or of all if counts is nil. The first entry must be one of
// them.
func (v *Verdict) mostBindingOf(from, to int, counts func(*zone.Zone) bool) (index int, refused bool) {
	index = from
	wait, share := time.Duration(-1), 2.0
	for i := from; i < to; i++ {
		if counts != nil && !counts(v.Entries[i].Zone) {
			continue
		}
		d := &v.Decisions[i]
		if !d.Allowed {
			if w := v.Entries[i].Policy.Waits(d, v.Checks[i].Cost).Retry; w > wait {
				index, wait, refused = i, w, true
			}
			continue
		}
		if left := ShareLeft(d); !refused && left < share {
			index, share = i, left
		}
	}
	return index, refused
}

// ShareLeft returns the part of the quota that is left, from 0 to 1.
func ShareLeft(d *algorithms.Decision) float64 {
	return float64(d.Remaining) / float64(max(1, d.Quota))
}

// reject records that a zone refuses the request without asking the store.
func (v *Verdict) reject(z *zone.Zone, c *zone.Check) {
	f := Refusal{Zone: z, Key: c.Key, DryRun: c.DryRun, Err: c.Rejection, Status: c.Status, Policy: c.Policy, Decision: c.Banned, Cost: c.Cost}
	o := f.Outcome()
	v.Rejections = append(v.Rejections, f)
	v.countUnasked(z, c, o)
}

// countUnasked counts the outcome of the request in a zone that does not ask the store, and publishes it.
func (v *Verdict) countUnasked(z *zone.Zone, c *zone.Check, o outcome.Outcome) {
	z.Stats.Add(c.Key, c.Plan, o, stats.Untimed)
	if v.witness == nil {
		feed.PublishWithoutDecision(v.Request.Request, z.Name, c.Plan, c.Key, o, c.Rejection)
	}
}

// add adds what to ask of the store for a zone.
func (v *Verdict) add(z *zone.Zone, c *zone.Check) {
	check := store.Check{Rule: c.Policy.Rule, Key: c.Key, Cost: c.Cost, Independent: c.DryRun, KeyRules: z.KeyRules}
	if c.Policy.Slots && c.Cost > 0 {
		check.LeaseID = store.NewLeaseID()
		v.leases = true
	}
	v.late = v.late || z.ChargesLate()
	v.Entries = append(v.Entries, Entry{Zone: z, Policy: c.Policy})
	v.Checks = append(v.Checks, check)
	v.Decisions = append(v.Decisions, algorithms.Decision{})
	if !c.DryRun {
		v.enforce(len(v.Entries) - 1)
	}
}

// enforce makes an entry one that may refuse the request.
func (v *Verdict) enforce(i int) {
	if j := v.Enforced; i != j {
		v.Entries[i], v.Entries[j] = v.Entries[j], v.Entries[i]
		v.Checks[i], v.Checks[j] = v.Checks[j], v.Checks[i]
		v.Decisions[i], v.Decisions[j] = v.Decisions[j], v.Decisions[i]
	}
	v.Enforced++
}

// renameLeases gives the slots other names before the store is asked again. It may have charged one before another
// zone refused, and give that back by its name only after the next one was charged.
func (v *Verdict) renameLeases() {
	for i := range v.Enforced {
		if c := &v.Checks[i]; c.LeaseID != "" {
			c.LeaseID = store.NewLeaseID()
		}
	}
}

// dropExempt drops the zones from which the request's key is exempt: they have not decided, and
// nothing was charged.
func (v *Verdict) dropExempt() {
	for i := range v.Decisions {
		if v.Decisions[i].Exempt {
			v.filter(func(i int) bool {
				if v.Decisions[i].Exempt {
					v.count(i, outcome.Exempt, stats.Untimed)
				}
				return !v.Decisions[i].Exempt
			})
			return
		}
	}
}

// filter drops the entries for which keep is false.
func (v *Verdict) filter(keep func(i int) bool) {
	n, enforced := 0, 0
	for i := range v.Entries {
		if !keep(i) {
			continue
		}
		v.Entries[n], v.Checks[n], v.Decisions[n] = v.Entries[i], v.Checks[i], v.Decisions[i]
		n++
		if i < v.Enforced {
			enforced++
		}
	}
	clear(v.Entries[n:])
	clear(v.Checks[n:])
	v.Entries, v.Checks, v.Decisions, v.Enforced = v.Entries[:n], v.Checks[:n], v.Decisions[:n], enforced
}

// anyRefuses reports whether an enforced zone refuses.
func (v *Verdict) anyRefuses() bool {
	for i := range v.Enforced {
		if !v.Decisions[i].Allowed {
			return true
		}
	}
	return false
}

// countDecisions counts the decision of each zone. Dry runs charge whatever the others decide.
func (v *Verdict) countDecisions(took time.Duration) {
	if v.Outcome == outcome.Abandoned || v.Outcome == outcome.FailedClosed {
		v.countAll(v.Outcome, took)
		return
	}
	for i := range v.Entries {
		o, enforced := v.Outcome, i < v.Enforced
		if v.Decisions[i].BanBegins && enforced {
			v.Entries[i].Zone.Stats.Bans.Count()
		}
		switch {
		case !v.Decisions[i].Allowed && enforced:
			o = zone.RefusalOutcome(&v.Decisions[i])
		case !v.Decisions[i].Allowed:
			o = outcome.DryRun
		case v.Refused && enforced:
			o = outcome.NotCharged
		}
		if (o == outcome.Allowed || o == outcome.Local) && v.IsNear(i) {
			v.Entries[i].Zone.Stats.NearLimit.Add(1)
			v.Near = v.Near || enforced
		}
		v.count(i, o, took)
	}
}

// IsNear reports whether the request has brought its key near the limit of an entry.
func (v *Verdict) IsNear(i int) bool {
	return v.Checks[i].Cost > 0 && zone.IsNear(&v.Decisions[i])
}

// countAll counts the same outcome in all zones.
func (v *Verdict) countAll(o outcome.Outcome, took time.Duration) {
	for i := range v.Entries {
		v.count(i, o, took)
	}
}

// count counts the outcome of the request in one of its zones, and publishes it.
func (v *Verdict) count(i int, o outcome.Outcome, took time.Duration) {
	e := &v.Entries[i]
	e.Outcome = o
	e.Zone.Stats.Add(v.Checks[i].Key, e.Policy.Plan, o, took)
	if c := &v.Checks[i]; o == outcome.Limited && c.Cost > e.Zone.Cost.Number {
		e.Zone.Stats.NoteRefusedCost(c.Key, c.Cost)
	}
	if v.witness != nil {
		v.witness.Decided(e, &v.Checks[i], &v.Decisions[i])
		return
	}
	feed.Publish(v.Request.Request, e.Zone.Name, e.Policy.Plan, &v.Checks[i], o, &v.Decisions[i], nil)
}
