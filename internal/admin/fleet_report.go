package admin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/feed"
	"github.com/seed-161337e5/caddyratelimit/internal/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// maxLists bounds the zones whose keys are in a report, because looking them up takes about a millisecond for each
	// kind of count, and listed the keys of each kind. maxNetworks bounds those whose networks are, because
	// counting them takes memory.
	maxLists    = 16
	listed      = 100
	maxNetworks = 4

	// sampled is how many refusals are in a report, and how many other decisions.
	sampled = 10

	// leastSpan is the shortest time between two reports.
	leastSpan = time.Second

	// idleReports is how long after a report the next one may come before nobody looks any more, and diagnosePause how often
	// doctor looks while somebody does.
	idleReports   = 2 * store.CountInterval
	diagnosePause = 2 * store.CountInterval
)

// ours is the reporter of this process.
var ours reporter

// reporter writes the reports of this process. All shared stores have the same one, because several of them may be one server.
type reporter struct {
	writing sync.Mutex
	wrote   time.Time
	text    string // which was written then

	mu      sync.Mutex
	last    *fleet.Report // with zones
	refused *feed.Subscriber
	others  *feed.Subscriber
	idle    *time.Timer
}

// report tells the other instances how the newest config defines the zones in shared stores, and what this one counts while somebody
// looks.
func report() {
	ours.rest() // it subscribed for the zones of the config before
	report, _, stores := brief()
	text := fleet.Encode(report)
	for _, s := range stores {
		s.store.Store.Store.(store.Shared).Report(text, ours.write)
	}
}

// write writes a report. It is called while somebody looks, for each store.
func (r *reporter) write() string {
	r.writing.Lock()
	defer r.writing.Unlock()
	if r.text != "" && time.Since(r.wrote) < leastSpan {
		return r.text
	}
	report, zones := now()
	addLists(report, zones)
	r.sample(report, zones)
	if len(report.Zones) > 0 {
		r.last = report
	} else if r.last != nil { // the store is being closed: what the zones have counted remains
		r.last.Now, r.last.Decisions = report.Now, nil
		report = r.last
	}
	report.Diagnosis = diagnoses.lately(diagnose)
	r.wrote, r.text = time.Now(), fleet.Encode(report)
	return r.text
}

// brief returns what this process tells while nobody looks, the shared stores, and their zones by name.
func brief() (*fleet.Report, []*runningZone, []*runningStore) {
	report := &fleet.Report{Name: processName(), Version: moduleVersion(), Since: processStart.Truncate(time.Millisecond)}
	var zones []*runningZone
	var stores []*runningStore
	for _, s := range runningStores() {
		if _, ok := s.store.Store.Store.(store.Shared); ok {
			zones, stores = append(zones, s.zones...), append(stores, s)
		}
	}
	slices.SortFunc(zones, func(a, b *runningZone) int { return strings.Compare(a.Name, b.Name) })
	sum := sha256.New()
	for _, z := range zones {
		told := fleet.Zone{Name: z.Name, Definition: z.definition()}
		report.Zones = append(report.Zones, told)
		sum.Write([]byte(told.Name + "\x00" + told.Definition + "\x00"))
	}
	report.Config = hex.EncodeToString(sum.Sum(nil)[:4])
	return report, zones, stores
}

// now returns what this process has to tell at the moment, without lists of keys, and the zones.
func now() (*fleet.Report, []*runningZone) {
	report, zones, stores := brief()
	report.Now = time.Now()
	for _, s := range stores {
		report.Stores = append(report.Stores, s.state())
	}
	for i, z := range zones {
		told, described := &report.Zones[i], z.describe(nil)
		maps.DeleteFunc(described.Totals, func(_ string, n uint64) bool { return n == 0 })
		told.Totals, told.Near, told.ZoneCosts = described.Totals, described.NearLimit, described.ZoneCosts
		told.Rate, told.InUse = described.Rate, described.InUse
		report.Requests, report.Rate = report.Requests+told.Requests(), report.Rate+*told.Rate
	}
	return report, zones
}

// addLists adds the keys and networks of the zones with the most requests.
func addLists(report *fleet.Report, zones []*runningZone) {
	order := make([]int, len(zones))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(report.Zones[b].Requests(), report.Zones[a].Requests()) })
	networks := 0
	for place, i := range order {
		told := &report.Zones[i]
		if zones[i].hasNetworks() {
			if networks++; networks <= maxNetworks {
				told.Networks = zones[i].countNetworks()
			} else {
				report.Omitted.Networks++
			}
		}
		switch {
		case told.Requests() == 0:
			told.Keys = new(fleet.Keys)
		case place >= maxLists || zones[i].Stats.Keys == nil:
			report.Omitted.Lists++
		default:
			told.Keys = zones[i].keys(listed)
		}
	}
}

// keys returns up to n of the most frequent keys by each kind of count. Readers split them into parts.
func (z *runningZone) keys(n int) *fleet.Keys {
	all := fleet.NewKeys(z.top(n, topk.Requests), z.top(n, topk.Refused), z.top(n, topk.DryRun))
	for i := range all.Keys {
		all.Keys[i].Parts = nil
	}
	return all
}

// sample adds decisions since the last report, and asks for more. The first report has none.
func (r *reporter) sample(report *fleet.Report, zones []*runningZone) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused == nil {
		refused, err := feed.Subscribe(r.wants(true))
		if err != nil {
			return // others look at the decisions of this instance
		}
		others, err := feed.Subscribe(r.wants(false))
		if err != nil {
			refused.Unsubscribe()
			return
		}
		r.refused, r.others = refused, others
		r.idle = time.AfterFunc(idleReports, r.rest)
	}
	r.idle.Reset(idleReports)
	for _, from := range []*feed.Subscriber{r.refused, r.others} {
		some, _ := sample(from, sampled, zones)
		report.Decisions = append(report.Decisions, some...)
	}
}

// wants returns which decisions are told: refusals or others, of zones of shared stores.
func (r *reporter) wants(refused bool) func(zone, key string, o outcome.Outcome) bool {
	mine := make(map[string]bool)
	for _, z := range runningZones() {
		_, mine[z.Name] = z.store.Store.Store.(store.Shared)
	}
	return func(zone, key string, o outcome.Outcome) bool { return mine[zone] && refuses(zone, key, o) == refused }
}

// rest ends the subscriptions when nobody looks any more.
func (r *reporter) rest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused != nil {
		r.idle.Stop()
		r.refused.Unsubscribe()
		r.others.Unsubscribe()
		r.refused, r.others = nil, nil
	}
}

// state describes a store by what its requests have met, without asking it.
func (s *runningStore) state() adminapi.Store {
	answer := s.known(keyCounts(s.zones))
	answers := !answer.Failing
	answer.Answers, answer.Details, answer.Backend = &answers, nil, ""
	return answer
}

// diagnoses has what doctor finds here for people who look at the fleet.
var diagnoses diagnosed

type diagnosed struct {
	mu    sync.Mutex
	begun time.Time // when doctor began to look last
	found *adminapi.Diagnosis
}

// lately returns what doctor has found in the last moments, and has it look again. It returns nil if nobody has asked for long.
func (d *diagnosed) lately(diagnose func(context.Context) (adminapi.Diagnosis, error)) *adminapi.Diagnosis {
	d.mu.Lock()
	defer d.mu.Unlock()
	since := time.Since(d.begun)
	if since > 2*diagnosePause {
		d.found = nil
	}
	if since >= diagnosePause {
		d.begun = time.Now()
		go func() {
			found, err := diagnose(context.Background())
			d.mu.Lock()
			defer d.mu.Unlock()
			if err != nil {
				d.begun = d.begun.Add(-diagnosePause) // the next report asks again
				return
			}
			d.found = &found
		}()
	}
	if d.found == nil {
		return nil
	}
	found := *d.found
	found.Findings = slices.Clone(found.Findings)
	return &found
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
