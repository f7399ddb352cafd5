package running

import (
	"cmp"
	"fmt"
	"maps"
	"os"
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
	last string // with zones
}

// report tells the other instances how the newest config defines the zones in shared stores, and what this one counts while somebody
// looks.
func report() {
	stores := Shared()
	text := fleet.Encode(Tell(stores, time.Time{}, 0))
	for _, s := range stores {
		s.Ref.Store.Store.(store.Shared).Report(text, ours.write)
	}
}

// write writes a report. It is called while somebody looks, for each store.
func (r *reporter) write() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	report := Tell(Shared(), time.Now(), maxLists)
	if len(report.Zones) > 0 { // else the store is being closed: what the zones have counted remains
		r.last = fleet.Encode(report)
	}
	return r.last
}

// Tell returns what this process reports of the zones in shared stores, those with the most requests first: what they count now, unless
// that is zero, with lists of the keys of some.
func Tell(stores []*Store, now time.Time, lists int) *fleet.Report {
	report := &fleet.Report{Name: ProcessName(), Now: now}
	var zones []*Zone
	for _, s := range stores {
		zones = append(zones, s.Zones...)
		if told := s.Show(nil); !now.IsZero() && (told.Failing || told.Breaker == store.BreakerOpen) {
			report.Trouble = "requests get no answer from store " + told.Name
		}
	}
	slices.SortFunc(zones, func(a, b *Zone) int {
		return cmp.Or(cmp.Compare(b.SinceLoaded(), a.SinceLoaded()), strings.Compare(a.Name, b.Name))
	})
	for i, z := range zones {
		told := fleet.Zone{Name: z.Name, Definition: z.definition()}
		if !now.IsZero() {
			told.ZoneCounts = z.counts()
			report.Requests, report.Rate = report.Requests+told.Requests(), report.Rate+told.Rate
			maps.DeleteFunc(told.Totals, func(_ string, n uint64) bool { return n == 0 })
		}
		for by := range told.Tops {
			if i < lists {
				top := z.top(listed, topk.Kind(by))
				told.Tops[by], told.Since = top.Keys, top.Since
			}
			for at := range told.Tops[by] {
				told.Tops[by][at].Parts = nil // readers split them
			}
		}
		report.Zones = append(report.Zones, told)
	}
	return report
}

// ProcessName names this process for people.
func ProcessName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "a host without a name"
	}
	return fmt.Sprintf("%s (process %d)", host, os.Getpid())
}
