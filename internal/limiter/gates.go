package limiter

import (
	"errors"
	"hash/maphash"
	"math/rand/v2"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/feed"
	"github.com/seed-161337e5/caddyratelimit/internal/gate"
	"github.com/seed-161337e5/caddyratelimit/internal/hangup"
	"github.com/seed-161337e5/caddyratelimit/internal/late"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/store"
)

var (
	// ErrOverloaded is the error of a request that gets no slot of an adaptive zone in time.
	ErrOverloaded = errors.New("the upstream is overloaded")

	// ErrOverShare is the error of a request whose key has more than its share of the slots.
	ErrOverShare = errors.New("this key asks for more than its share of an overloaded upstream")
)

// keySeed hashes the keys of gates. It is secret, so that nobody can choose keys that look alike.
var keySeed = maphash.MakeSeed()

// GateKey is the key of a request as gates have it.
func GateKey(key string) uint64 { return maphash.String(keySeed, key) }

// Full is the refusal of an adaptive zone.
type Full struct {
	Refusal
	Told time.Duration // the wait that Retry-After tells
}

// enter waits for the slots of the adaptive zones, after all other zones have let the request pass. If there is none
// for it, what the others have charged is given back.
func (l *Limiter) enter(v *Verdict) {
	start := l.start()
	for i := range v.entrances {
		e, came := &v.entrances[i], l.Clock.Now()
		e.Place = v.slot(e)
		e.Zone.Stats.Waits.Observe(e.Class, l.Clock.Now()-came)
		if e.Place != nil {
			continue
		}
		v.leaveGates()
		l.uncharge(v)
		refused, reason := outcome.Abandoned, error(nil)
		if v.Full != nil {
			refused, reason = outcome.Shed, v.Full.Err
			if errors.Is(reason, ErrOverShare) {
				refused = outcome.Limited
			}
		} else {
			v.Outcome = outcome.Abandoned
		}
		for j := range v.entrances {
			o := outcome.NotCharged
			if j == i {
				o = refused
			}
			v.countEntrance(&v.entrances[j], o, reason, l.since(start))
		}
		return
	}
	for i := range v.entrances {
		v.countEntrance(&v.entrances[i], outcome.Allowed, nil, l.since(start))
	}
	v.holdSlots(l.Clock)
}

// slot returns the request's place once it has a slot. If it gets none, the verdict says why, unless the client
// has left.
func (v *Verdict) slot(e *late.Slot) *gate.Place {
	g, now := e.Zone.Gate, v.wait.clock.Now
	p, running := g.Enter(int64(now()), GateKey(e.Key), e.Class)
	if running {
		return p
	}
	over := make(chan struct{})
	timer := v.wait.clock.AfterFunc(e.Zone.Adaptive.MaxWait, func() { close(over) })
	defer timer.Stop()
	r := v.Request.Request
	if v.wait.client == nil {
		v.wait.client = hangup.Watch(r)
	}
	select {
	case granted := <-p.Ready():
		if granted {
			return p
		}
	case <-over:
		if !g.Leave(int64(now()), p) && <-p.Ready() {
			return p // just in time
		}
	case <-r.Context().Done():
		g.Abandon(int64(now()), p)
		return nil
	case <-v.wait.client.Left:
		g.Abandon(int64(now()), p)
		return nil
	}
	why := g.Refuse(int64(now()), p)
	v.Full = &Full{
		Refusal: Refusal{Zone: e.Zone, Err: ErrOverloaded, Status: statusOverloaded},
		Told:    time.Duration(why.RetryAfter(rand.Float64())) * time.Second,
	}
	if why.Over {
		v.Full.Key, v.Full.Err, v.Full.Status = e.Key, ErrOverShare, 0
	}
	return nil
}

// leaveGates gives the slots back of a request that is not served.
func (v *Verdict) leaveGates() {
	for i := range v.entrances {
		if e := &v.entrances[i]; e.Place != nil {
			e.Done(v.wait.clock.Now(), gate.Left)
		}
	}
}

// holdSlots makes the request hold its slots until its response begins, or until it is over.
func (v *Verdict) holdSlots(c clock.Clock) {
	if v.completion == nil {
		v.completion = late.New(v.strips, pool.Session{}, nil)
	}
	for _, e := range v.entrances {
		v.completion.Hold(c, e)
	}
}

// uncharge gives back what the other zones have charged for a request that an adaptive zone does not let pass.
func (l *Limiter) uncharge(v *Verdict) {
	var back []store.Adjustment
	for i := range v.Entries {
		if v.charged(i) && !v.queues(i) { // a turn is over
			back = append(back, v.giveBack(i))
		}
	}
	if v.completion != nil {
		v.completion.Abandon()
		v.completion = nil
	}
	if len(back) == 0 {
		return
	}
	ref := l.Store
	if v.Outcome == outcome.Local {
		ref = l.Local
	}
	s, err := ref.Begin()
	if err != nil {
		return // the store is closed, and with it the charges of this process are gone
	}
	s.Adjust(back...)
	s.End()
}

// countEntrance counts the outcome of the request in an adaptive zone, and publishes it.
func (v *Verdict) countEntrance(e *late.Slot, o outcome.Outcome, reason error, took time.Duration) {
	class := e.Zone.Adaptive.ClassName(e.Class)
	e.Zone.Stats.Add(e.Key, class, o, took)
	if v.witness == nil {
		feed.PublishWithoutDecision(v.Request.Request, e.Zone.Name, class, e.Key, o, reason)
	}
}
