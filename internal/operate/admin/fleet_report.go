package admin

import (
	"cmp"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/operate/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// maxLists bounds the zones whose keys are in a report, because looking them up takes about a millisecond for each kind of
	// count. listed bounds the keys of each kind.
	maxLists = 16
	listed   = 100
)

// ours is the reporter of this process.
var ours reporter

// reporter writes the reports of this process. All shared stores have the same one, because several of them may be one server.
type reporter struct {
	mu   sync.Mutex
	last *fleet.Report // with zones
}

// report tells the other instances how the newest config defines the zones in shared stores, and what this one counts while somebody
// looks.
func report() {
	report, _, stores := brief()
	text := fleet.Encode(report)
	for _, s := range stores {
		s.store.Store.Store.(store.Shared).Report(text, ours.write)
	}
}

// write writes a report. It is called while somebody looks, for each store.
func (r *reporter) write() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	report, zones := now()
	for i, z := range zones[:min(maxLists, len(zones))] {
		for by := range report.Zones[i].Tops {
			top := z.top(listed, topk.Kind(by))
			for at := range top.Keys {
				top.Keys[at].Parts = nil // readers split them
			}
			report.Zones[i].Tops[by], report.Zones[i].Since = top.Keys, top.Since
		}
	}
	if len(report.Zones) > 0 {
		r.last = report
	} else if r.last != nil { // the store is being closed: what the zones have counted remains
		r.last.Now = report.Now
		report = r.last
	}
	return fleet.Encode(report)
}

// brief returns what this process tells while nobody looks, the shared stores, and their zones: those with the most requests first.
func brief() (*fleet.Report, []*runningZone, []*runningStore) {
	report := &fleet.Report{Name: processName(), Version: moduleVersion()}
	var zones []*runningZone
	var stores []*runningStore
	for _, s := range runningStores() {
		if _, ok := s.store.Store.Store.(store.Shared); ok {
			zones, stores = append(zones, s.zones...), append(stores, s)
		}
	}
	slices.SortFunc(zones, func(a, b *runningZone) int {
		return cmp.Or(cmp.Compare(b.sinceLoaded(), a.sinceLoaded()), strings.Compare(a.Name, b.Name))
	})
	for _, z := range zones {
		report.Zones = append(report.Zones, fleet.Zone{Name: z.Name, Definition: z.definition()})
	}
	return report, zones, stores
}

// now returns what this process has to tell at the moment, without lists of keys, and the zones.
func now() (*fleet.Report, []*runningZone) {
	report, zones, stores := brief()
	report.Now = time.Now()
	for _, s := range stores {
		if told := s.known(nil); told.Failing || told.Breaker == store.BreakerOpen {
			report.Trouble = "requests get no answer from store " + told.Name
		}
	}
	for i, z := range zones {
		told := &report.Zones[i]
		told.ZoneCounts = z.counts()
		report.Requests, report.Rate = report.Requests+told.Requests(), report.Rate+told.Rate
		maps.DeleteFunc(told.Totals, func(_ string, n uint64) bool { return n == 0 })
	}
	return report, zones
}

const modulePath = "github.com/seed-161337e5/caddyratelimit"

// moduleVersion returns the version of this module in the binary.
var moduleVersion = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == modulePath {
			return m.Version
		}
	}
	return "unknown"
})
