package admin

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/adaptive"
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// maxTops bounds the zones whose top keys are looked up for one event, because that takes about a
	// millisecond for each. The others have their turn later.
	maxTops = 3

	// topPause is how many events later those of a zone are looked up again.
	topPause = 3

	// topKeys is how many keys of a zone an event has.
	topKeys = 20

	// keysPulse is how many events later the keys of memory stores are counted again, because all of
	// them have to be looked at.
	keysPulse = 30
)

// seconds makes the events of a page's stream.
type seconds struct {
	stores    []*runningStore
	zones     []*runningZone
	templates templates

	n      int // events so far
	costs  []adminapi.ZoneCosts
	totals [][outcome.Count]uint64
	tops   []topState

	rollouts map[string]string // at the start, of zones
	others   *others           // nil: the page is about this instance
}

// topState says when the top keys of a zone were sent, and whether they have changed since.
type topState struct {
	sent            int
	refused, dryRun bool
}

func newSeconds(stores []*runningStore, zones []*runningZone) *seconds {
	slices.SortStableFunc(stores, func(a, b *runningStore) int { return strings.Compare(storeName(a.store), storeName(b.store)) })
	rollouts := make(map[string]string, len(zones))
	for _, z := range zones {
		rollouts[z.Name] = z.rollout()
	}
	return &seconds{
		rollouts: rollouts,
		stores:   stores, zones: zones, templates: templatesOf(zones),
		totals: make([][outcome.Count]uint64, len(zones)), costs: make([]adminapi.ZoneCosts, len(zones)), tops: make([]topState, len(zones)),
	}
}

// outdated reports whether a limit has ended, so that the page must begin again.
func (s *seconds) outdated() bool {
	return slices.ContainsFunc(s.zones, func(z *runningZone) bool { return z.rollout() != s.rollouts[z.Name] })
}

// next returns what has happened since the event before.
func (s *seconds) next() *adminapi.PageSecond {
	event := &adminapi.PageSecond{
		Time: time.Now().UnixMilli(), Totals: make(map[int][]uint64), Costs: make(map[int]adminapi.ZoneCosts), Stores: []adminapi.PageStoreState{},
		InUse: make(map[int]int64), Adaptive: adaptive.Running(),
	}
	for i, z := range s.zones {
		if costs := z.costs(); !maps.Equal(costs.Costs, s.costs[i].Costs) {
			s.costs[i], event.Costs[i] = costs, costs
		}
		totals := z.Stats.Totals()
		if totals == s.totals[i] && s.n > 0 {
			continue
		}
		for o := range totals {
			changed := totals[o] != s.totals[i][o]
			s.tops[i].refused = s.tops[i].refused || changed && outcome.Outcome(o).Refused()
			s.tops[i].dryRun = s.tops[i].dryRun || changed && outcome.Outcome(o) == outcome.DryRun
		}
		s.totals[i] = totals
		event.Totals[i] = totals[:]
	}
	event.Top = s.nextTops()
	s.addOthers(event)
	for _, of := range s.stores {
		event.Stores = append(event.Stores, of.forPage(s.zones, event))
	}
	if s.n%keysPulse == 0 {
		event.Keys = make(map[int]int64)
		counts := keyCounts(s.zones)
		for i, z := range s.zones {
			if n, ok := counts[z.Name]; ok {
				event.Keys[i] = n
			}
		}
	}
	s.n++
	return event
}

// nextTops returns the top keys of some zones where they have changed: those that have waited longest.
func (s *seconds) nextTops() (tops []adminapi.PageTop) {
	var due []int
	for i, t := range s.tops {
		if (t.refused || t.dryRun) && (t.sent == 0 || s.n+1 >= t.sent+topPause) {
			due = append(due, i)
		}
	}
	slices.SortStableFunc(due, func(a, b int) int { return cmp.Compare(s.tops[a].sent, s.tops[b].sent) })
	for _, i := range due[:min(maxTops, len(due))] {
		if s.tops[i].refused {
			tops = append(tops, adminapi.PageTop{Index: i, Top: s.zones[i].top(topKeys, topk.Refused)})
		}
		if s.tops[i].dryRun {
			tops = append(tops, adminapi.PageTop{Index: i, Top: s.zones[i].top(topKeys, topk.DryRun)})
		}
		s.tops[i] = topState{sent: s.n + 1}
	}
	return tops
}

// forPage returns the state of a store, and adds what zones hold of it to the event.
func (s *runningStore) forPage(zones []*runningZone, event *adminapi.PageSecond) adminapi.PageStoreState {
	shared := s.store.Store
	state := adminapi.PageStoreState{Failing: !shared.Health.Answers(), Share: s.store.Instances(s.instances)}
	if since := shared.Health.DownSince(); !since.IsZero() {
		state.Since = since.UnixMilli()
	}
	if observed, ok := shared.Store.(store.Observed); ok {
		stats := observed.Stats()
		state.Breaker, state.DenyHits, state.Lost, state.Calls = stats.Breaker, stats.DenyHits, stats.Lost, stats.Calls
		for i, z := range zones {
			if z.store.ID != s.store.ID {
				continue
			}
			if n, ok := stats.InUse[z.Name]; ok {
				event.InUse[i] = n
			}
		}
	}
	if fleet, ok := shared.Store.(store.Fleet); ok {
		state.Instances = fleet.Instances()
	}
	if shared.Remote {
		state.Latency, state.Sum = shared.Latency.Counts(), shared.Latency.Sum().Seconds()
		for kind := range shared.Health.Errors {
			if n := shared.Health.ErrorCount(kind); n > 0 {
				if state.Errors == nil {
					state.Errors = make(map[string]int64)
				}
				state.Errors[kind] = n
			}
		}
	}
	return state
}
