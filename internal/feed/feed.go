// Package feed publishes decisions as they are made. While there are no subscribers, a request
// pays for loading a pointer.
package feed

import (
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

	// Buffer is how many decisions wait for a subscriber.
	Buffer = 256
)

// ErrTooManySubscribers is the error of Subscribe when all places are taken.
var ErrTooManySubscribers = errors.New("too many subscribers")

// Subscriber receives a sample of the decisions: the next ones after each [Subscriber.Ask], and none while its buffer is full.
// As these come in a row, it gets those of all zones of a request. A decision that it does not get costs a request no look at
// a clock.
type Subscriber struct {
	wants     func(zone, key string, o outcome.Outcome) bool
	decisions chan adminapi.Decision
	asked     atomic.Int64 // how many more it has asked for
	skipped   atomic.Uint64
}

// Subscribe adds a subscriber to the decisions that it wants.
func Subscribe(wants func(zone, key string, o outcome.Outcome) bool) (*Subscriber, error) {
	subscribers.mu.Lock()
	defer subscribers.mu.Unlock()
	all := slices.Clone(current())
	if len(all) >= MaxSubscribers {
		return nil, ErrTooManySubscribers
	}
	s := &Subscriber{wants: wants, decisions: make(chan adminapi.Decision, Buffer)}
	all = append(all, s)
	subscribers.all.Store(&all)
	return s, nil
}

// Unsubscribe removes the subscriber.
func (s *Subscriber) Unsubscribe() {
	subscribers.mu.Lock()
	defer subscribers.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(current()), func(other *Subscriber) bool { return other == s })
	if len(all) == 0 {
		subscribers.all.Store(nil)
		return
	}
	subscribers.all.Store(&all)
}

// Ask asks for the next n decisions, instead of those that it has asked for before.
func (s *Subscriber) Ask(n int) { s.asked.Store(int64(n)) }

// Take returns the decisions that have come, and how many others there were since the last call.
func (s *Subscriber) Take() (all []adminapi.Decision, skipped uint64) {
	for range len(s.decisions) {
		all = append(all, <-s.decisions)
	}
	return all, s.skipped.Swap(0)
}

// Publish sends the outcome of a request in a zone, under a plan, to the subscribers. The decision is that of the
// store, the reason is that of a zone which did not ask the store. Each may be nil.
func Publish(r *http.Request, zone, plan, key string, cost int64, o outcome.Outcome, d *algorithms.Decision, reason error) {
	all := subscribers.all.Load()
	if all == nil {
		return
	}
	for _, s := range *all {
		if !s.wants(zone, key, o) {
			continue
		}
		if s.asked.Load() <= 0 || s.asked.Add(-1) < 0 {
			s.skipped.Add(1)
			continue
		}
		decision := adminapi.Decision{
			Time: time.Now(), Zone: zone, Plan: plan, Outcome: outcome.Names[o], Cost: cost,
			KeyText: adminapi.NewKeyText(beginning(key), len(key)), ClientIP: clientip.Client(r),
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
		case s.decisions <- decision:
		default:
			s.skipped.Add(1)
		}
	}
}

// beginning copies as much of a text as a decision holds. Decisions may stay in a buffer for a
// while, and clients choose how long their texts are.
func beginning(text string) string { return strings.Clone(text[:min(len(text), topk.MaxKey)]) }
