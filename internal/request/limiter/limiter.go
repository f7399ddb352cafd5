// Package limiter decides requests: which zones a request meets, what the store is asked, and
// what follows from its decisions. It needs no HTTP response, and it waits and measures by a
// clock that it is given. So a request from a log can be decided at the time in the log.
package limiter

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/internal/stats"
	"github.com/seed-161337e5/caddyratelimit/internal/throttle"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Config configures a Limiter.
type Config struct {
	// Zones are the zones, in the order in which requests meet them.
	Zones []*zone.Zone

	// Store decides for all zones. Local replaces it while it does not answer or is full; nil if
	// no zone may need it.
	Store, Local *pool.Ref

	// Instances is the number of instances that share a limit while each of them counts by itself. 0: as
	// many as the store has last seen.
	Instances int

	// Measure switches on the measurement of how long decisions take.
	Measure bool

	Logger *zap.Logger

	// Clock is the clock by which requests wait. The default is the machine's.
	Clock clock.Clock

	// Witness gets what each zone decides, instead of the subscribers of package feed. Usually it is nil.
	Witness Witness
}

// Witness sees a request being decided, zone by zone. It must not keep the entries.
type Witness interface {
	// Met says whether a zone counts the request, and what it asks. The error is that of a matcher.
	Met(e *Entry, met bool, err error)

	// Decided says the outcome in a zone that asks the store, with the decision, if there is one.
	Decided(e *Entry)
}

// Limiter decides requests. Its methods may be called from many goroutines at once.
type Limiter struct {
	Config
	warned   throttle.Throttle    // of a proxy that is not trusted
	now      func() time.Duration // what decisions are measured by
	networks []*store.Networks    // of each zone; nil for one that takes none
}

// New returns a Limiter.
func New(c Config) *Limiter {
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	l := &Limiter{Config: c, now: c.Clock.Now, networks: make([]*store.Networks, len(c.Zones))}
	for i, z := range c.Zones {
		if z.TakesNetworks() {
			l.networks[i] = c.Store.Networks(z.Rules()[0])
		}
	}
	if !c.Measure || !c.Store.Store.Remote && !slices.ContainsFunc(c.Zones, (*zone.Zone).Waits) {
		// A decision that needs neither a server nor a wait counts as no time: reading the clock twice would cost as much as a large part of it.
		l.now = func() time.Duration { return 0 }
	}
	return l
}

var (
	// ErrLeft is the error of a request whose client has left while the request waited.
	ErrLeft = errors.New("client left while waiting for its turn")

	// ErrNoStore is the error of a request that a zone denies because the store does not answer.
	ErrNoStore = errors.New("rate limit store does not answer")

	// ErrBusy is the error of a request that is refused because this process has too much to do to ask the
	// store.
	ErrBusy = errors.New("this Caddy is too busy to ask the rate limit store")
)

// Decide decides whether a request may pass. The request must have Caddy's replacer in its
// context, as caddyhttp.PrepareRequest puts it there. Decide blocks while zones make the request
// wait. The caller must call [Verdict.Release].
//
// The target of a request may be a URL without a host (GET x:text). It has no path, so it is limited as a request for /.
// From here on it is one, because some upstreams would take the text for a path.
func (l *Limiter) Decide(r *http.Request) *Verdict {
	r.URL.Opaque = ""
	v := newVerdict(l, r)
	start := l.now()
	if l.collect(v) && len(v.Entries) > 0 {
		defer v.wait.over()
		l.decide(v, start)
	}
	if v.Err == nil {
		v.countDecisions(l.since(start))
	}
	return v
}

// collect finds the zones that the request meets, and what to ask the store for each. It returns
// false if the store must not be asked, because a zone has refused the request without it or
// there was an error. The zones after that one are then skipped.
func (l *Limiter) collect(v *Verdict) bool {
	for i, z := range l.Zones {
		e := v.add()
		met, err := z.Meet(&e.Check, &v.Request, l.networks[i])
		if l.Witness != nil {
			l.Witness.Met(e, met, err)
		}
		if v.Err = err; err != nil {
			v.dropLast()
			return false
		}
		if !met {
			z.Missed.Add()
			v.dropLast()
			continue
		}
		if name := z.Charge.CostHeader; name != "" {
			v.strips = append(v.strips, name)
		}
		if z.Template.HasAddress {
			l.checkProxy(z, &v.Request)
		}
		if e.Network != nil && l.Witness == nil {
			e.Network.Count()
		}
		switch {
		case e.Rejection != nil:
			if e.Invalid != nil && z.InvalidLimit.Allow() {
				l.Logger.Warn("the request has no valid limit", zap.String("zone", z.Name), zap.Error(e.Invalid))
			}
			v.count(e, e.refused(), stats.Untimed)
			v.Rejections = append(v.Rejections, *e)
			v.dropLast() // and e with it
			if v.Rejected() != nil {
				return false
			}
		case e.Policy == nil:
			v.count(e, outcome.Exempt, stats.Untimed)
			v.dropLast()
		default:
			v.late = v.late || z.Charge.Late()
		}
	}
	return true
}

// decide asks the store, or what replaces it, and notes what is decided.
func (l *Limiter) decide(v *Verdict, start time.Duration) {
	err := l.ask(l.Store, v)
	if err != nil && err != ErrLeft {
		l.Store.Store.Health.Report(err, l.Logger)
		v.Outcome = outcome.Local
		err = l.fallBack(v, start, err)
	}
	switch {
	case err == ErrLeft:
		v.Outcome, v.Failure, v.Binding = outcome.Abandoned, err, nil
	case err != nil:
		v.Outcome, v.Failure, v.Binding = outcome.FailedClosed, err, nil
	case len(v.Entries) == 0 && v.Outcome == outcome.Local: // no zone has decided
		v.Outcome = outcome.FailedOpen
	}
}

// ask asks a store to decide. If the request may pass and something remains to be done when it is
// over, the verdict's completion keeps the store open until then.
func (l *Limiter) ask(ref *pool.Ref, v *Verdict) error {
	s, err := ref.Begin()
	if err != nil {
		return err
	}
	defer func() {
		if v.completion == nil {
			s.End()
		}
	}()
	return l.take(s, v)
}

// take asks the store until it is clear whether the request may pass. It asks again after a wait
// if the zones allow one. Then the request waits for its turn in a queue. If the client leaves, a
// call to the store is not interrupted, and only turns and slots are given back; otherwise clients
// could choose what they are charged. Dry runs are asked once. What they have charged is given back if the request is
// refused: if they were enforced, it would have cost nothing in them either.
func (l *Limiter) take(s pool.Session, v *Verdict) error {
	ctx := context.Background() // a store in this process asks nobody
	if s.Remote {
		ctx = context.WithoutCancel(v.Request.Context())
	}
	if v.late {
		v.asked = v.wait.clock.Now()
	}
	for all := true; ; all = false {
		if err := v.askOnce(ctx, s, all); err != nil {
			if !all {
				s.Adjust(v.giveBack((*Entry).isDryRun)...)
			}
			return err
		}
		s.Health.Report(nil, l.Logger)
		if v.Binding = v.MostBinding((*Entry).isEnforced); v.Binding == nil || v.Binding.Decision.Allowed {
			break
		}
		wait := v.wait.next(v)
		if wait <= 0 || !v.wait.pause(v.Request.Request, wait) {
			s.Adjust(v.giveBack((*Entry).isDryRun)...)
			if wait > 0 {
				return ErrLeft
			}
			return nil
		}
	}
	if delay := v.delay(); delay > 0 && !v.queue(s, delay) {
		return ErrLeft
	}
	v.completion = v.complete(s)
	return nil
}

// fallBack decides a request that the store did not decide, by the on_store_error of its zones:
// one enforced zone that denies is enough to deny; the zones that decide locally do so together;
// the others let the request pass. If the store answers but is full, it still works for known
// keys, so all zones decide locally: a client with a new key must neither be refused nor pass
// only because of that. If this process was too busy to ask, no zone lets the request pass, or clients could choose
// that by sending more than it can do. The verdict keeps only the zones that have decided.
func (l *Limiter) fallBack(v *Verdict, start time.Duration, cause error) error {
	full, busy := errors.Is(cause, store.ErrFull) && l.Local != nil, errors.Is(cause, store.ErrBusy)
	for i := range v.Entries {
		switch on := v.Entries[i].Zone.OnStoreError; {
		case full || v.Entries[i].DryRun:
		case busy && on != config.LocalOnError:
			return ErrBusy
		case on == config.DenyOnError:
			return ErrNoStore
		}
	}
	v.Binding = nil // of a decision before, after which the request has waited
	v.drop(outcome.FailedOpen, l.since(start), func(e *Entry) bool {
		return !full && e.Zone.OnStoreError != config.LocalOnError
	})
	if len(v.Entries) == 0 {
		return nil
	}
	n := l.Store.Instances(l.Instances)
	for i := range v.Entries {
		v.Entries[i].Policy = v.Entries[i].Policy.Split(n)
	}
	return l.ask(l.Local, v)
}

// since returns how long a decision took that began at start.
func (l *Limiter) since(start time.Duration) time.Duration {
	if !l.Measure {
		return stats.Untimed
	}
	return l.now() - start
}
