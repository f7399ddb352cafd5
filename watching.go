package caddyratelimit

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
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
)

var errManyViewers = errors.New("too many watch already")

// viewer is somebody who watches. It gets a sample: no more than it has asked for in a
// second, and none that it is too slow for.
type viewer struct {
	wants   func(zone, key string, o outcome) bool
	seen    chan seen
	skipped atomic.Uint64 // since the last one

	mu     sync.Mutex
	params algorithms.Params
	state  algorithms.State
}

// seen is one decision of one zone.
type seen struct {
	Time time.Time `json:"time"`
	Zone string    `json:"zone"`
	keyText
	Outcome string `json:"outcome"`
	Cost    int64  `json:"cost"`

	// Decision is absent if the zone has not decided.
	Decision *standing `json:"decision,omitempty"`

	ClientIP string `json:"client_ip"`
	Method   string `json:"method"`
	Host     string `json:"host"`
	Path     string `json:"path"`

	// Skipped is how many decisions went unseen before this one.
	Skipped uint64 `json:"skipped,omitempty"`
}

// watch makes a viewer who wants at most so many decisions a second.
func watch(rate int64, wants func(zone, key string, o outcome) bool) (*viewer, error) {
	params, err := algorithms.TokenBucket{}.Prepare(algorithms.Limit{Events: rate, Window: time.Second})
	if err != nil {
		return nil, err
	}
	v := &viewer{wants: wants, seen: make(chan seen, viewerBuffer), params: params}
	watching.mu.Lock()
	defer watching.mu.Unlock()
	var all []*viewer
	if before := watching.viewers.Load(); before != nil {
		all = slices.Clone(*before)
	}
	if len(all) >= maxViewers {
		return nil, errManyViewers
	}
	all = append(all, v)
	watching.viewers.Store(&all)
	return v, nil
}

// leave ends the watch.
func (v *viewer) leave() {
	watching.mu.Lock()
	defer watching.mu.Unlock()
	all := slices.Clone(*watching.viewers.Load())
	all = slices.DeleteFunc(all, func(other *viewer) bool { return other == v })
	if len(all) == 0 {
		watching.viewers.Store(nil)
		return
	}
	watching.viewers.Store(&all)
}

// tell shows viewers what became of the request in one of its zones.
func (a *attempt) tell(viewers []*viewer, i int, o outcome) {
	zone, check := a.zones[i].name, &a.checks[i]
	for _, v := range viewers {
		if !v.wants(zone, check.Key, o) {
			continue
		}
		now := time.Now()
		if !v.may(now) {
			v.skipped.Add(1)
			continue
		}
		s := seen{
			Time: now, Zone: zone, Outcome: outcomeNames[o], Cost: check.Cost,
			keyText: newKeyText(beginning(check.Key), len(check.Key)),
			Method:  beginning(a.request.Method), Host: beginning(a.request.Host), Path: beginning(a.request.URL.Path),
		}
		s.ClientIP, _ = caddyhttp.GetVar(a.request.Context(), caddyhttp.ClientIPVarKey).(string)
		if d := &a.decisions[i]; o.decided() && d.At != 0 { // a store that remembers a refusal has not looked at the others
			s.Decision = newStanding(*d)
		}
		select {
		case v.seen <- s:
		default:
			v.skipped.Add(1)
		}
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
