package admin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	// kind of count, and listed the keys of each kind.
	maxLists = 16
	listed   = 100

	// sampled is how many refusals are in a report, and how many other decisions.
	sampled = 10

	// leastSpan is the shortest time whose requests tell a rate.
	leastSpan = time.Second

	// idleReports is how long after a report the next one may come before nobody looks any more.
	idleReports = 5 * store.ReportInterval

	// wishDoctor begins the wish to know what doctor finds.
	wishDoctor = "doctor "
)

// reporter writes the reports of this process to one store.
type reporter struct {
	store string // its name: zones of other stores are not told there

	mu       sync.Mutex
	at       time.Time     // of the last report that told a new rate
	requests uint64        // until then
	rate     float64       // which it told
	last     *fleet.Report // with zones
	refused  *feed.Subscriber
	others   *feed.Subscriber
	idle     *time.Timer

	wished time.Time // until when networks are told
}

// reporters has the reporter of each open store with a board, by its identity.
var reporters sync.Map

// report tells the boards of all stores what writes the reports of this process.
func report(stores []*runningStore) {
	runs := make(map[any]bool)
	for _, s := range stores {
		if board, ok := s.store.Store.Store.(store.Shared); ok {
			known, _ := reporters.LoadOrStore(s.store.ID, &reporter{store: storeName(s.store)})
			r := known.(*reporter)
			r.rest() // it subscribed for the zones of the config before
			board.Report(r.write)
			runs[s.store.ID] = true
		}
	}
	reporters.Range(func(id, _ any) bool {
		if !runs[id] {
			reporters.Delete(id)
		}
		return true
	})
}

// write writes a report. It is called while somebody looks.
func (r *reporter) write(wish string) string {
	r.hear(wish)
	report := r.now(true)
	if len(report.Zones) > 0 {
		r.last = report
	} else if r.last != nil { // the store is being closed: what the zones have counted remains
		r.last.Now, r.last.Decisions, r.last.Skipped = report.Now, nil, 0
		report = r.last
	}
	if strings.HasPrefix(wish, wishDoctor) {
		if last := diagnoses.of(wish, diagnose); last.found != nil {
			report.Diagnosis, report.Wish, report.Diagnosed = last.found, last.wish, max(1, time.Since(last.begun).Milliseconds())
		}
	}
	return fleet.Encode(report, store.MaxReport)
}

// hear notes that people who look wish to know networks, if a wish is about these.
func (r *reporter) hear(wish string) {
	if strings.HasPrefix(wish, wishNetworks) {
		r.mu.Lock()
		r.wished = time.Now().Add(store.LookLife)
		r.mu.Unlock()
	}
}

// now returns what this process has to tell at the moment. A report that is sent has lists of keys too, and the decisions
// since the one before.
func (r *reporter) now(sent bool) *fleet.Report {
	report := &fleet.Report{Name: processName(), Version: moduleVersion(), Since: processStart.UnixMilli(), Now: time.Now().UnixMilli()}
	var zones []*runningZone
	for _, s := range runningStores() {
		if storeName(s.store) == r.store {
			zones = append(zones, s.zones...)
			report.Stores = append(report.Stores, s.state())
		}
	}
	slices.SortFunc(zones, func(a, b *runningZone) int { return strings.Compare(a.Name, b.Name) })
	sum := sha256.New()
	for _, z := range zones {
		told := fleet.Zone{Name: z.Name, Digest: z.digest()[:8], Totals: make(map[string]uint64), Near: z.Stats.NearLimit.Load(), ZoneCosts: z.costs()}
		for o, n := range z.Stats.Totals() {
			if n > 0 {
				told.Totals[outcome.Names[o]] = n
			}
		}
		described := z.describe(nil)
		told.Rate, told.InUse = described.Rate, described.InUse
		report.Requests += told.Requests()
		report.Zones = append(report.Zones, told)
		sum.Write([]byte(z.Name + "\x00" + z.digest() + "\x00"))
	}
	report.Config = hex.EncodeToString(sum.Sum(nil)[:4])
	if sent {
		report.Omitted.Lists = addLists(report.Zones, zones)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	report.Rate = r.measure(report.Requests, sent)
	if sent {
		if time.Now().Before(r.wished) {
			addNetworks(report, zones)
		}
		r.sample(report, zones)
	}
	return report
}

// measure returns how many requests come in a second since the last report that was sent, or what that told if it has just
// been sent. The lock is held.
func (r *reporter) measure(requests uint64, sent bool) (rate float64) {
	took := time.Since(cmp.Or(r.at, processStart))
	if took < leastSpan {
		return r.rate
	}
	if requests >= r.requests {
		rate = float64(requests-r.requests) / took.Seconds()
	}
	if sent {
		r.at, r.requests, r.rate = time.Now(), requests, rate
	}
	return rate
}

// addLists adds the keys of the zones with the most requests, and returns how many zones have keys that are not told.
func addLists(told []fleet.Zone, zones []*runningZone) (omitted int) {
	order := make([]int, len(told))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(told[b].Requests(), told[a].Requests()) })
	for place, i := range order {
		totals := zones[i].Stats.Totals()
		switch {
		case told[i].Requests() == 0:
			told[i].Top = new(fleet.Top)
			continue
		case place >= maxLists || zones[i].Stats.Keys == nil:
			omitted++
			continue
		}
		lists := []adminapi.Top{zones[i].top(listed, topk.Requests)}
		for o, n := range totals {
			kind := topk.Kind(-1)
			switch {
			case n == 0:
			case outcome.Outcome(o).Refused():
				kind = topk.Refused
			case outcome.Outcome(o) == outcome.DryRun:
				kind = topk.DryRun
			}
			if kind >= 0 && !slices.ContainsFunc(lists, func(l adminapi.Top) bool { return l.By == sortNames[kind] }) {
				lists = append(lists, zones[i].top(listed, kind))
			}
		}
		told[i].Top = fleet.NewTop(lists)
	}
	return omitted
}

// sample adds decisions since the last report, and asks for more. The first report has none. The lock is held.
func (r *reporter) sample(report *fleet.Report, zones []*runningZone) {
	if r.refused == nil {
		refused, err := feed.SubscribeOnDemand(r.wants(func(o outcome.Outcome) bool { return o.Refused() || o == outcome.DryRun }))
		if err != nil {
			return // others look at the decisions of this instance
		}
		others, err := feed.SubscribeOnDemand(r.wants(func(o outcome.Outcome) bool { return !o.Refused() && o != outcome.DryRun }))
		if err != nil {
			refused.Unsubscribe()
			return
		}
		r.refused, r.others = refused, others
		r.idle = time.AfterFunc(idleReports, r.rest)
	}
	r.idle.Reset(idleReports)
	split := templatesOf(zones)
	for _, from := range []*feed.Subscriber{r.refused, r.others} {
		some, skipped := drain(from, sampled, split)
		report.Decisions, report.Skipped = append(report.Decisions, some...), report.Skipped+skipped
	}
}

// wants returns which decisions are told: those of zones of this store.
func (r *reporter) wants(kind func(outcome.Outcome) bool) func(zone, _ string, o outcome.Outcome) bool {
	mine := make(map[string]bool)
	for _, z := range runningZones() {
		mine[z.Name] = storeName(z.store) == r.store
	}
	return func(zone, _ string, o outcome.Outcome) bool { return mine[zone] && kind(o) }
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
	answer := s.known()
	answers := !answer.Failing
	answer.Answers, answer.Details, answer.Backend = &answers, nil, ""
	return answer
}

// diagnoses has what doctor finds here for people who look at the fleet.
var diagnoses diagnosed

type diagnosed struct {
	mu    sync.Mutex
	wish  string    // the last one that was heard
	begun time.Time // when it was
	runs  bool      // doctor looks for it
	last  diagnosis // what was found last
}

// diagnosis is what doctor has found for a wish.
type diagnosis struct {
	found *adminapi.Diagnosis // nil: nothing yet
	wish  string
	begun time.Time
}

// of returns what doctor has found last, which may be for an earlier wish, and begins to look if the wish is new. Wishes may be
// anybody's, so a new one is heard at most once in a few seconds, and when doctor has ended.
func (d *diagnosed) of(wish string, diagnose func(context.Context) (adminapi.Diagnosis, error)) diagnosis {
	d.mu.Lock()
	defer d.mu.Unlock()
	if wish != d.wish && !d.runs && time.Since(d.begun) > store.ReportInterval {
		d.wish, d.begun, d.runs = wish, time.Now(), true
		go func() {
			found, err := diagnose(context.Background())
			d.mu.Lock()
			defer d.mu.Unlock()
			d.runs = false
			if err != nil {
				d.wish = "" // the next report asks again
				return
			}
			found.Findings = slices.DeleteFunc(found.Findings, func(f adminapi.Finding) bool { return f.Level == adminapi.LevelOK && f.Zone != "" })
			d.last = diagnosis{&found, wish, d.begun}
		}()
	}
	last := d.last
	if last.found != nil {
		found := *last.found
		found.Findings = slices.Clone(found.Findings)
		last.found = &found
	}
	return last
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
