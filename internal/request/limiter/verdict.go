package limiter

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/feed"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/request/late"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
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
	Rejections []Entry

	// Entries are the zones that asked the store.
	Entries []Entry

	// Outcome is the outcome of the request if no limit refuses it: Allowed; Local if the store
	// has not decided; FailedOpen, FailedClosed or Abandoned if no zone has.
	Outcome outcome.Outcome

	// Failure is why no zone has decided: ErrLeft, ErrNoStore or ErrBusy.
	Failure error

	// Binding is the enforced entry that binds the client most, nil if no enforced zone has decided.
	Binding *Entry

	Request placeholder.Request

	checks     []store.Check         // of a call
	decisions  []algorithms.Decision // on them
	witness    Witness
	wait       retryWait
	late       bool          // whether a charge depends on the response
	asked      time.Duration // when the store was first asked, if a charge depends on the response
	strips     []string      // headers that the client must not see
	completion *late.Completion
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
	v.Err, v.Failure, v.Outcome = nil, nil, 0
	v.Rejections, v.Entries, v.checks, v.decisions = emptied(v.Rejections), emptied(v.Entries), emptied(v.checks), v.decisions[:0]
	v.Binding, v.Request, v.wait, v.witness = nil, placeholder.Request{}, retryWait{}, nil
	v.late, v.asked, v.strips, v.completion = false, 0, nil, nil
}

func emptied[T any](list []T) []T {
	if len(list) > 1 {
		clear(list[1:])
	}
	return list[:0]
}

// Passes reports whether the request reaches the next handlers.
func (v *Verdict) Passes() bool {
	return v.Err == nil && v.Rejected() == nil && !v.Refused() && v.Outcome.Passes()
}

// Refused reports whether a limit refuses the request: that of Binding.
func (v *Verdict) Refused() bool { return v.Binding != nil && !v.Binding.Decision.Allowed }

// Rejected returns the refusal of an enforced zone that did not ask the store; nil if there is
// none.
func (v *Verdict) Rejected() *Entry {
	if n := len(v.Rejections); n > 0 && !v.Rejections[n-1].DryRun {
		return &v.Rejections[n-1]
	}
	return nil
}

// MostBinding returns the entry that binds the client most, of those that count: the refusal with the longest wait or, if
// none of them refuses, the entry with the smallest share of its quota left. It is nil if none counts.
func (v *Verdict) MostBinding(counts func(*Entry) bool) (most *Entry) {
	wait, share := time.Duration(-1), 2.0
	for i := range v.Entries {
		e := &v.Entries[i]
		if !counts(e) {
			continue
		}
		if !e.Decision.Allowed {
			if w := e.Waits().Retry; w > wait {
				most, wait = e, w
			}
		} else if left := e.ShareLeft(); wait < 0 && left < share {
			most, share = e, left
		}
	}
	return most
}

// add adds an entry. It is not empty yet.
func (v *Verdict) add() *Entry {
	n := len(v.Entries)
	v.Entries = slices.Grow(v.Entries, 1)[:n+1]
	e := &v.Entries[n]
	e.Outcome, e.lease, e.waiter = 0, "", nil
	return e
}

// dropLast drops the last entry.
func (v *Verdict) dropLast() {
	n := len(v.Entries) - 1
	if n > 0 {
		v.Entries[n] = Entry{}
	}
	v.Entries = v.Entries[:n]
}

// askOnce asks a store once, about all zones or about those that are enforced, and drops the zones from which the request's key is
// exempt: they have not decided, and nothing was charged. Each time the slots get other names: the store
// may have charged one before another zone refused, and give that back by its name only after the next one was charged.
func (v *Verdict) askOnce(ctx context.Context, s pool.Session, all bool) error {
	v.checks, v.decisions = v.checks[:0], v.decisions[:0]
	for i := range v.Entries {
		e := &v.Entries[i]
		if e.DryRun && !all {
			continue
		}
		if e.Policy.Slots && e.Cost > 0 {
			e.lease = store.NewLeaseID()
		}
		v.checks, v.decisions = append(v.checks, e.Ask()), append(v.decisions, algorithms.Decision{})
	}
	if err := s.Take(ctx, v.checks, v.decisions); err != nil {
		return err
	}
	n, exempt := 0, false
	for i := range v.Entries {
		if e := &v.Entries[i]; all || !e.DryRun {
			e.Decision = v.decisions[n]
			exempt = exempt || e.Decision.Exempt
			n++
		}
	}
	if exempt {
		v.drop(outcome.Exempt, stats.Untimed, func(e *Entry) bool { return e.Decision.Exempt })
	}
	return nil
}

// drop drops some entries, and counts the outcome in their zones.
func (v *Verdict) drop(o outcome.Outcome, took time.Duration, which func(*Entry) bool) {
	n := 0
	for i := range v.Entries {
		if e := &v.Entries[i]; which(e) {
			v.count(e, o, took)
		} else {
			v.Entries[n] = *e
			n++
		}
	}
	clear(v.Entries[n:])
	v.Entries = v.Entries[:n]
}

// giveBack returns adjustments that give back the charges of some entries.
func (v *Verdict) giveBack(which func(*Entry) bool) (back []store.Adjustment) {
	for i := range v.Entries {
		if e := &v.Entries[i]; e.charged() && which(e) {
			back = append(back, e.giveBack())
		}
	}
	return back
}

// complete returns the completion of a request that may pass: the slots to give back, and the charges that the response may
// change. It is nil if there are none.
func (v *Verdict) complete(s pool.Session) *late.Completion {
	slots := v.giveBack(func(e *Entry) bool { return e.lease != "" })
	if slots == nil && !v.late {
		return nil
	}
	c := late.New(v.strips, s, slots)
	for i := range v.Entries {
		e := &v.Entries[i]
		if e.Zone.Charge.Late() && e.Decision.Allowed && (e.Cost > 0 || e.Zone.Charge.SaysCost()) {
			c.Book(v.wait.clock, v.asked, e.Zone, e.giveBack())
		}
	}
	return c
}

// countDecisions counts the decision of each zone. Dry runs charge whatever the others decide.
func (v *Verdict) countDecisions(took time.Duration) {
	rejected := v.Rejected() != nil // so no store was asked
	for i := range v.Entries {
		e, o := &v.Entries[i], v.Outcome
		switch {
		case v.Failure != nil:
		case rejected, e.Decision.Allowed && v.Refused() && !e.DryRun:
			o = outcome.NotCharged
		case !e.Decision.Allowed:
			if o = e.refused(); e.Decision.BanBegins && !e.DryRun {
				e.Zone.Stats.Bans.Add(1)
			}
		}
		if (o == outcome.Allowed || o == outcome.Local) && e.IsNear() {
			e.Zone.Stats.NearLimit.Add(1)
		}
		v.count(e, o, took)
	}
}

// count counts the outcome of the request in a zone, and publishes it.
func (v *Verdict) count(e *Entry, o outcome.Outcome, took time.Duration) {
	e.Outcome = o
	cost, unusual := e.Cost, int64(0)
	if !e.Asked() {
		cost = 0
	} else if v.witness != nil {
		v.witness.Decided(e)
	}
	if o == outcome.Limited && cost > e.Zone.Cost.Number {
		unusual = cost
	}
	e.Zone.Stats.Add(e.Key, e.Plan, o, unusual, took)
	if v.witness == nil {
		feed.Publish(v.Request.Request, e.Zone.Name, e.Plan, e.Key, cost, o, &e.Decision, e.Rejection)
	}
}
