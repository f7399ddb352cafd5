// Package feed publishes decisions as they are made. While nobody subscribes, a request pays for
// one look at a pointer.
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

// subscribers are the subscribers of all configs that run. The pointer is nil while there are none.
var subscribers struct {
	mu  sync.Mutex // to change the list
	all atomic.Pointer[[]*Subscriber]
}

// Subscribers returns the current subscribers, the oldest first.
func Subscribers() []*Subscriber {
	if all := subscribers.all.Load(); all != nil {
		return *all
	}
	return nil
}

const (
	// MaxSubscribers bounds what watching costs requests.
	MaxSubscribers = 16

	// subscriberBuffer is how many decisions wait for a viewer who is slow.
	subscriberBuffer = 256

	// IdleTimeout is how long a viewer keeps its place although there is nothing to show it
	// and another one wants the place. Whether it still reads cannot be seen without writing.
	IdleTimeout = 30 * time.Second
)

var ErrTooManySubscribers = errors.New("too many watch already")

// Subscriber is somebody who watches. It gets a sample: no more than it has asked for in a
// second, and none that it is too slow for.
type Subscriber struct {
	wants     func(zone, key string, o outcome.Outcome) bool
	Decisions chan adminapi.Decision
	Skipped   atomic.Uint64 // since the last one
	active    atomic.Int64  // when it was last shown something, or came, in nanoseconds since 1970
	Evicted   chan struct{} // closed when another viewer has taken its place

	mu     sync.Mutex
	params algorithms.Params
	state  algorithms.State
}

// Subscribe makes a viewer who wants at most so many decisions a second. If all places are taken
// it gets that of the viewer that has been idle for longest, if one has been for long enough.
func Subscribe(rate int64, wants func(zone, key string, o outcome.Outcome) bool) (*Subscriber, error) {
	params, err := algorithms.TokenBucket{}.Prepare(algorithms.Limit{Events: rate, Window: time.Second})
	if err != nil {
		return nil, err
	}
	v := &Subscriber{wants: wants, Decisions: make(chan adminapi.Decision, subscriberBuffer), Evicted: make(chan struct{}), params: params}
	v.MarkActive()
	subscribers.mu.Lock()
	defer subscribers.mu.Unlock()
	var all []*Subscriber
	if before := subscribers.all.Load(); before != nil {
		all = slices.Clone(*before)
	}
	if len(all) >= MaxSubscribers {
		idlest := slices.MinFunc(all, func(a, b *Subscriber) int { return cmp.Compare(a.active.Load(), b.active.Load()) })
		if time.Since(time.Unix(0, idlest.active.Load())) < IdleTimeout {
			return nil, ErrTooManySubscribers
		}
		close(idlest.Evicted)
		all = without(all, idlest)
	}
	all = append(all, v)
	subscribers.all.Store(&all)
	return v, nil
}

// Unsubscribe ends the watch.
func (v *Subscriber) Unsubscribe() {
	subscribers.mu.Lock()
	defer subscribers.mu.Unlock()
	before := subscribers.all.Load()
	if before == nil {
		return
	}
	all := without(slices.Clone(*before), v)
	if len(all) == 0 {
		subscribers.all.Store(nil)
		return
	}
	subscribers.all.Store(&all)
}

// without takes a viewer out of a list.
func without(all []*Subscriber, v *Subscriber) []*Subscriber {
	return slices.DeleteFunc(all, func(other *Subscriber) bool { return other == v })
}

// MarkActive takes note that something is shown to the viewer.
func (v *Subscriber) MarkActive() { v.active.Store(time.Now().UnixNano()) }

// Publish shows viewers what became of a request in a zone. The decision is that of the store,
// the reason that of a zone which did not ask it; there need be neither.
func Publish(r *http.Request, zone string, check *store.Check, o outcome.Outcome, d *algorithms.Decision, reason error) {
	viewers := subscribers.all.Load()
	if viewers == nil {
		return
	}
	for _, v := range *viewers {
		if !v.wants(zone, check.Key, o) {
			continue
		}
		now := time.Now()
		if !v.may(now) {
			v.Skipped.Add(1)
			continue
		}
		s := adminapi.Decision{
			Time: now, Zone: zone, Outcome: outcome.Names[o], Cost: check.Cost,
			KeyText: adminapi.NewKeyText(beginning(check.Key), len(check.Key)), ClientIP: clientip.Client(r),
			Method: beginning(r.Method), Host: beginning(r.Host), Path: beginning(r.URL.Path),
		}
		if reason != nil {
			s.Reason = reason.Error()
		}
		if d != nil && o.Decided() && d.At != 0 { // a store that remembers a refusal has not looked at the others
			s.Decision = adminapi.NewQuotaStatus(*d)
		}
		select {
		case v.Decisions <- s:
		default:
			v.Skipped.Add(1)
		}
	}
}

// PublishWithoutDecision shows them a request for which the zone did not ask the store.
func PublishWithoutDecision(r *http.Request, zone, key string, o outcome.Outcome, reason error) {
	if subscribers.all.Load() != nil {
		Publish(r, zone, &store.Check{Key: key}, o, nil, reason)
	}
}

// may keeps to the rate that the viewer has asked for.
func (v *Subscriber) may(now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	state, d := algorithms.TokenBucket{}.Take(v.state, v.params, now.UnixMicro(), 1)
	v.state = state
	return d.Allowed
}

// beginning is as much of a text as is worth keeping, in memory of its own: what is seen
// may wait for a while, and clients choose how long their texts are.
func beginning(text string) string { return strings.Clone(text[:min(len(text), topk.MaxKey)]) }
