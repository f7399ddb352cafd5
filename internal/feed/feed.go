// Package feed publishes decisions as they are made. While there are no subscribers, a request
// pays for loading a pointer.
package feed

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// subscribers are the subscribers of all configs that run. The pointer is nil while there are
// none.
var subscribers struct {
	mu  sync.Mutex // to change the list
	all atomic.Pointer[[]*Subscriber]
}

// current returns the subscribers, the oldest first.
func current() []*Subscriber {
	if all := subscribers.all.Load(); all != nil {
		return *all
	}
	return nil
}

const (
	// MaxSubscribers bounds the cost of subscribers to requests.
	MaxSubscribers = 16

	// subscriberBuffer is how many decisions wait for a slow subscriber.
	subscriberBuffer = 256

	// idleTimeout is how long a subscriber keeps its place when there is nothing to send to it
	// and all places are taken. Without a write nothing shows whether its client still reads.
	idleTimeout = 30 * time.Second
)

// ErrTooManySubscribers is the error of Subscribe when all places are taken.
var ErrTooManySubscribers = errors.New("too many subscribers")

// Subscriber receives a sample of the decisions: no more per second than it has asked for, and
// none while its buffer is full.
type Subscriber struct {
	wants     func(zone, key string, o outcome.Outcome) bool
	Decisions chan adminapi.Decision
	Skipped   atomic.Uint64 // decisions that were not sent since the last one that was
	active    atomic.Int64  // time of subscription or of the last decision, in nanoseconds of Unix time
	Evicted   chan struct{} // closed when another subscriber has taken the place

	onDemand bool
	asked    atomic.Int64 // how many more it has asked for, if it gets them on demand

	mu     sync.Mutex
	params algorithms.Params
	state  algorithms.State
}

// SubscribeOnDemand is [Subscribe] for a subscriber that gets the next decisions after each [Subscriber.Ask].
// As these come in a row, it gets those of all zones of a request. A decision that it does not get costs
// a request no look at a clock.
func SubscribeOnDemand(wants func(zone, key string, o outcome.Outcome) bool) (*Subscriber, error) {
	s := newSubscriber(wants)
	s.onDemand = true
	return s, s.subscribe()
}

// Ask asks for the next n decisions, in place of what it has asked for before.
func (s *Subscriber) Ask(n int) { s.asked.Store(int64(n)) }

// Subscribe adds a subscriber to the decisions that it wants, at most rate of them per second. If
// all places are taken, the subscriber that has been idle the longest is evicted, provided that it
// has been idle for [idleTimeout].
func Subscribe(rate int64, wants func(zone, key string, o outcome.Outcome) bool) (*Subscriber, error) {
	params, err := algorithms.TokenBucket{}.Prepare(algorithms.Limit{Events: rate, Window: time.Second})
	if err != nil {
		return nil, err
	}
	s := newSubscriber(wants)
	s.params = params
	return s, s.subscribe()
}

func newSubscriber(wants func(zone, key string, o outcome.Outcome) bool) *Subscriber {
	s := &Subscriber{wants: wants, Decisions: make(chan adminapi.Decision, subscriberBuffer), Evicted: make(chan struct{})}
	s.MarkActive()
	return s
}

func (s *Subscriber) subscribe() error {
	subscribers.mu.Lock()
	defer subscribers.mu.Unlock()
	all := slices.Clone(current())
	if len(all) >= MaxSubscribers {
		idlest := slices.MinFunc(all, func(a, b *Subscriber) int { return cmp.Compare(a.active.Load(), b.active.Load()) })
		if time.Since(time.Unix(0, idlest.active.Load())) < idleTimeout {
			return ErrTooManySubscribers
		}
		close(idlest.Evicted)
		all = without(all, idlest)
	}
	all = append(all, s)
	subscribers.all.Store(&all)
	return nil
}

// Unsubscribe removes the subscriber. It does nothing if the subscriber was evicted.
func (s *Subscriber) Unsubscribe() {
	subscribers.mu.Lock()
	defer subscribers.mu.Unlock()
	all := without(slices.Clone(current()), s)
	if len(all) == 0 {
		subscribers.all.Store(nil)
		return
	}
	subscribers.all.Store(&all)
}

// without removes a subscriber from a list.
func without(all []*Subscriber, s *Subscriber) []*Subscriber {
	return slices.DeleteFunc(all, func(other *Subscriber) bool { return other == s })
}

// MarkActive records that a decision is being sent to the subscriber's client.
func (s *Subscriber) MarkActive() { s.active.Store(time.Now().UnixNano()) }

// Publish sends the outcome of a request in a zone, under a plan, to the subscribers. The decision is that of the
// store, the reason is that of a zone which did not ask the store. Each may be nil.
func Publish(r *http.Request, zone, plan string, check *store.Check, o outcome.Outcome, d *algorithms.Decision, reason error) {
	all := subscribers.all.Load()
	if all == nil {
		return
	}
	for _, s := range *all {
		if !s.wants(zone, check.Key, o) {
			continue
		}
		now, ok := s.admits()
		if !ok {
			s.Skipped.Add(1)
			continue
		}
		decision := adminapi.Decision{
			Time: now, Zone: zone, Plan: plan, Outcome: outcome.Names[o], Cost: check.Cost,
			KeyText: adminapi.NewKeyText(beginning(check.Key), len(check.Key)), ClientIP: clientip.Client(r),
			Method: beginning(r.Method), Host: beginning(r.Host), Path: beginning(r.URL.Path), UserAgent: beginning(r.UserAgent()),
		}
		if reason != nil {
			decision.Reason = reason.Error()
		}
		// If another check was refused from the deny cache, the store has not looked at this one.
		if d != nil && o.Decided() && d.At != 0 {
			decision.Decision = adminapi.NewQuotaStatus(*d)
		}
		select {
		case s.Decisions <- decision:
		default:
			s.Skipped.Add(1)
		}
	}
}

// PublishWithoutDecision sends the outcome of a request for which the zone did not ask the store.
func PublishWithoutDecision(r *http.Request, zone, plan, key string, o outcome.Outcome, reason error) {
	if subscribers.all.Load() != nil {
		Publish(r, zone, plan, &store.Check{Key: key}, o, nil, reason)
	}
}

// admits reports whether the subscriber gets one more decision, counts it, and returns the time.
func (s *Subscriber) admits() (now time.Time, ok bool) {
	if s.onDemand {
		if s.asked.Load() <= 0 || s.asked.Add(-1) < 0 {
			return now, false
		}
		return time.Now(), true
	}
	now = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	state, d := algorithms.TokenBucket{}.Take(s.state, s.params, now.UnixMicro(), 1)
	s.state = state
	return now, d.Allowed
}

// beginning copies as much of a text as a decision holds. Decisions may stay in a buffer for a
// while, and clients choose how long their texts are.
func beginning(text string) string { return strings.Clone(text[:min(len(text), topk.MaxKey)]) }
