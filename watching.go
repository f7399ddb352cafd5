package caddyratelimit

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

// watching are those who watch decisions, over all configs that run. While there are
// none, a request pays for one look at a pointer.
var watching struct {
	mu      sync.Mutex
	viewers atomic.Pointer[[]*viewer]
}

const (
	// maxViewers bounds what watching costs requests.
	maxViewers = 16

	// viewerBuffer is how many decisions wait for a viewer who is slow.
	viewerBuffer = 256

	// viewerIdle is how long a viewer keeps its place although there is nothing to show it
	// and another one wants the place. Whether it still reads cannot be seen without writing.
	viewerIdle = 30 * time.Second
)

var errManyViewers = errors.New("too many watch already")

// viewer is somebody who watches. It gets a sample: no more than it has asked for in a
// second, and none that it is too slow for.
type viewer struct {
	wants   func(zone, key string, o outcome.Outcome) bool
	seen    chan adminapi.Decision
	skipped atomic.Uint64 // since the last one
	active  atomic.Int64  // when it was last shown something, or came, in nanoseconds since 1970
	gone    chan struct{} // closed when another viewer has taken its place

	mu     sync.Mutex
	params algorithms.Params
	state  algorithms.State
}

// watch makes a viewer who wants at most so many decisions a second. If all places are taken
// it gets that of the viewer that has been idle for longest, if one has been for long enough.
func watch(rate int64, wants func(zone, key string, o outcome.Outcome) bool) (*viewer, error) {
	params, err := algorithms.TokenBucket{}.Prepare(algorithms.Limit{Events: rate, Window: time.Second})
	if err != nil {
		return nil, err
	}
	v := &viewer{wants: wants, seen: make(chan adminapi.Decision, viewerBuffer), gone: make(chan struct{}), params: params}
	v.isActive()
	watching.mu.Lock()
	defer watching.mu.Unlock()
	var all []*viewer
	if before := watching.viewers.Load(); before != nil {
		all = slices.Clone(*before)
	}
	if len(all) >= maxViewers {
		idlest := slices.MinFunc(all, func(a, b *viewer) int { return cmp.Compare(a.active.Load(), b.active.Load()) })
		if time.Since(time.Unix(0, idlest.active.Load())) < viewerIdle {
			return nil, errManyViewers
		}
		close(idlest.gone)
		all = without(all, idlest)
	}
	all = append(all, v)
	watching.viewers.Store(&all)
	return v, nil
}

// leave ends the watch.
func (v *viewer) leave() {
	watching.mu.Lock()
	defer watching.mu.Unlock()
	before := watching.viewers.Load()
	if before == nil {
		return
	}
	all := without(slices.Clone(*before), v)
	if len(all) == 0 {
		watching.viewers.Store(nil)
		return
	}
	watching.viewers.Store(&all)
}

// without takes a viewer out of a list.
func without(all []*viewer, v *viewer) []*viewer {
	return slices.DeleteFunc(all, func(other *viewer) bool { return other == v })
}

// isActive takes note that something is shown to the viewer.
func (v *viewer) isActive() { v.active.Store(time.Now().UnixNano()) }

// show shows viewers what became of a request in a zone. The decision is that of the store,
// the reason that of a zone which did not ask it; there need be neither.
func (z *Zone) show(r *http.Request, check *store.Check, o outcome.Outcome, d *algorithms.Decision, reason error) {
	viewers := watching.viewers.Load()
	if viewers == nil {
		return
	}
	for _, v := range *viewers {
		if !v.wants(z.name, check.Key, o) {
			continue
		}
		now := time.Now()
		if !v.may(now) {
			v.skipped.Add(1)
			continue
		}
		s := adminapi.Decision{
			Time: now, Zone: z.name, Outcome: outcome.Names[o], Cost: check.Cost,
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
		case v.seen <- s:
		default:
			v.skipped.Add(1)
		}
	}
}

// showUnasked shows them a request for which the zone did not ask the store.
func (z *Zone) showUnasked(r *http.Request, key string, o outcome.Outcome, reason error) {
	if watching.viewers.Load() != nil {
		z.show(r, &store.Check{Key: key}, o, nil, reason)
	}
}

// may keeps to the rate that the viewer has asked for.
func (v *viewer) may(now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	state, d := algorithms.TokenBucket{}.Take(v.state, v.params, now.UnixMicro(), 1)
	v.state = state
	return d.Allowed
}

// beginning is as much of a text as is worth keeping, in memory of its own: what is seen
// may wait for a while, and clients choose how long their texts are.
func beginning(text string) string { return strings.Clone(text[:min(len(text), topk.MaxKey)]) }
