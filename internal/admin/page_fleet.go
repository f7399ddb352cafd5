package admin

import (
	"context"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/fleet"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// others are the other instances of the fleet that a page shows. It is nil for a page about this instance.
type others struct {
	mu   sync.Mutex
	view *fleet.View

	sent *fleet.View                           // with the last event
	told map[string]time.Time                  // when the reports were written whose decisions were sent, by instance
	seen map[string]map[string]*reportedCounts // by zone and instance
}

// reportedCounts are those of a zone of another instance. They stay when it leaves.
type reportedCounts struct {
	last, shown, step [outcome.Count]uint64 // reported; on the page; what the next event adds to that
}

// eventsOfReport is about how many events there are between two reports, over which counts are spread.
const eventsOfReport = uint64(store.CountInterval / pagePulse)

// followOthers looks at the fleet of stores until the context is done.
func followOthers(ctx context.Context, stores []*runningStore) *others {
	if len(stores) == 0 {
		return nil
	}
	o := &others{told: make(map[string]time.Time), seen: make(map[string]map[string]*reportedCounts)}
	go follow(ctx, stores, func(view *fleet.View) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.view = view
	})
	return o
}

// now returns the view if it has changed since the last call.
func (o *others) now() (view *fleet.View, isNew bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	isNew = o.view != o.sent
	o.sent = o.view
	return o.view, isNew
}

// note takes the counts of a view. A count never decreases, so that the page sees no negative rates.
func (o *others) note(view *fleet.View) {
	for _, m := range view.Members[1:] {
		if m.Report == nil {
			continue
		}
		for _, z := range m.Report.Zones {
			if o.seen[z.Name] == nil {
				o.seen[z.Name] = make(map[string]*reportedCounts)
			}
			counts, known := o.seen[z.Name][m.ID]
			if !known {
				counts = new(reportedCounts)
				o.seen[z.Name][m.ID] = counts
			}
			for i, name := range outcome.Names {
				n := z.Totals[name]
				switch {
				case !known:
					counts.last[i], counts.shown[i] = n, n
				case n > counts.last[i]:
					counts.last[i], counts.step[i] = n, (n-counts.shown[i]+eventsOfReport-1)/eventsOfReport
				}
			}
		}
	}
}

// add adds what others have counted in a zone, and reports whether that is more than before.
func (o *others) add(zone string, totals *[outcome.Count]uint64) (more bool) {
	for _, counts := range o.seen[zone] {
		for i := range counts.shown {
			shown := min(counts.last[i], counts.shown[i]+counts.step[i])
			more = more || shown != counts.shown[i]
			counts.shown[i] = shown
			totals[i] += shown
		}
	}
	return more
}

// tops adds the keys of others to the list of a zone.
func (o *others) tops(view *fleet.View, mine adminapi.Top, z *runningZone) adminapi.Top {
	all := []fleet.Lists{{mine, z.top(listed, topk.Requests)}}
	for _, m := range view.Members[1:] {
		if m.Report == nil {
			continue
		}
		for _, told := range m.Report.Zones {
			if told.Name == z.Name && told.Keys != nil {
				list := told.Keys.By(z.Name, mine.By, listed)
				for i := range list.Keys {
					list.Keys[i].KeyText = z.split(list.Keys[i].KeyText)
				}
				all = append(all, fleet.Lists{list, told.Keys.By(z.Name, sortNames[topk.Requests], listed)})
			}
		}
	}
	return fleet.Merge(all, topKeys)
}

// split adds the parts of a key of another instance.
func (z *runningZone) split(k adminapi.KeyText) adminapi.KeyText {
	text, err := k.Bytes()
	if err != nil {
		return k
	}
	return keyText(z.Template, text, max(len(text), k.Truncated))
}

// addOthers adds to an event what other instances have reported since the one before.
func (s *seconds) addOthers(event *adminapi.PageSecond) {
	if s.others == nil {
		return
	}
	view, isNew := s.others.now()
	if view == nil {
		return
	}
	if isNew {
		s.others.note(view)
		for _, m := range view.Members {
			event.Instances = append(event.Instances, m.Instance)
			if m.Report == nil || m.State == adminapi.StateHere || m.Report.Now.Equal(s.others.told[m.ID]) {
				continue
			}
			s.others.told[m.ID] = m.Report.Now
			for _, d := range m.Report.Decisions {
				d.Instance = m.Name
				if o, ok := outcome.Named(d.Outcome); ok && (o[outcome.Limited] || o[outcome.Banned] || o[outcome.Rejected]) {
					event.Refused = append(event.Refused, d)
				}
			}
		}
	}
	for i, z := range s.zones {
		totals := z.Stats.Totals()
		_, changed := event.Totals[i]
		if more := s.others.add(z.Name, &totals); more || changed || isNew {
			event.Totals[i] = totals[:]
		}
		if isNew && s.n%topPause == 0 { // those of others may have changed, where this instance refuses nobody
			s.tops[i].refused = s.tops[i].refused || totals[outcome.Limited]+totals[outcome.Banned]+totals[outcome.Rejected] > 0
		}
	}
	for i := range event.Top {
		event.Top[i].Top = s.others.tops(view, event.Top[i].Top, s.zones[event.Top[i].Index])
	}
}
