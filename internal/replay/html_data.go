package replay

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// The page has to be small, whatever the logs: what is drawn is reduced to what can be seen.
const (
	daySteps   = 1500 // steps of the day in one zone
	allSteps   = 6000 // in all zones
	fewSteps   = 120  // at least
	stripCells = 144
	fewCells   = 36
	stripKeys  = 20
	exactRanks = 500 // clients whose peaks are all drawn
	moreRanks  = 800
	pageNames  = 1000
)

// pageData is what the script of the page reads. Times are milliseconds since 1970.
type pageData struct {
	From     int64       `json:"from"`
	To       int64       `json:"to"`
	Lines    int64       `json:"lines"`
	Bad      int64       `json:"not_understood"`
	BadLines string      `json:"bad_lines,omitempty"`
	FirstBad []string    `json:"first_bad,omitempty"`
	Other    int64       `json:"no_requests"`
	Requests int64       `json:"requests"`
	Clients  int         `json:"clients"`
	Logs     []string    `json:"logs"`
	Config   string      `json:"config,omitempty"`
	Unknown  []string    `json:"unknown"`
	Networks []Network   `json:"networks,omitempty"`
	Zones    []*pageZone `json:"zones"`
}

type pageZone struct {
	Name         string           `json:"name"`
	Limit        string           `json:"limit"`
	Key          string           `json:"key"`
	Window       float64          `json:"window"`
	Length       string           `json:"length"` // of the window, as "1m"
	DryRun       bool             `json:"dry_run"`
	Requests     int64            `json:"requests"`
	NotJudged    string           `json:"not_judged,omitempty"`
	Keys         int              `json:"keys"`
	Refused      int64            `json:"refused"`
	KeysRefused  int              `json:"keys_refused"`
	FirstRefused int64            `json:"first_refused"`
	Busiest      *Peak            `json:"busiest,omitempty"`
	Headroom     string           `json:"headroom,omitempty"` // of the busiest, as "3.0 %"
	Day          pageSeries       `json:"day"`
	Peaks        [][2]int64       `json:"peaks"` // the rank of the first client with a peak, and the peak
	Names        []string         `json:"names"`
	Top          []*pageKey       `json:"top"`
	Networks     []RefusedNetwork `json:"networks,omitempty"`
	Strip        pageStrip        `json:"strip"`
	WhatIf       []WhatIf         `json:"what_if"`
	Beside       string           `json:"beside,omitempty"` // what the other zones mean for it
	Suggestion   *pageSuggestion  `json:"suggestion,omitempty"`
}

type pageSeries struct {
	Start    int64   `json:"start"`
	Step     int64   `json:"step"`
	Admitted []int64 `json:"admitted"`
	Refused  []int64 `json:"refused"`
}

type pageStrip struct {
	Start int64 `json:"start"`
	Step  int64 `json:"step"`
	Cells int   `json:"cells"`
}

type pageKey struct {
	Key       string  `json:"key"`
	Requests  int64   `json:"requests"`
	Refused   int64   `json:"refused"`
	First     int64   `json:"first"`
	Status    string  `json:"status"`
	Looks     string  `json:"looks,omitempty"`
	Agent     string  `json:"agent,omitempty"`
	Admitted  []int64 `json:"admitted"`
	RefusedIn []int64 `json:"refused_in"`
}

type pageSuggestion struct {
	Limit   string   `json:"limit"`
	Title   string   `json:"title"`
	Reasons []string `json:"reasons"`
}

func (r *Result) pageData() *pageData {
	d := &pageData{
		From: r.From.UnixMilli(), To: r.To.UnixMilli(), Lines: r.Lines, Bad: r.NotUnderstood, Requests: r.Requests, Clients: r.Clients,
		Config: Cut(Printable(r.Config), 100), Logs: []string{}, Unknown: []string{}, Zones: []*pageZone{},
	}
	d.BadLines, d.FirstBad, d.Other = r.notUnderstood(), r.badLines(200), r.NoRequests
	for _, l := range r.Logs {
		d.Logs = append(d.Logs, Cut(Printable(l.Name), 100)+" ("+l.Format+")")
	}
	for _, u := range r.Unknown {
		d.Unknown = append(d.Unknown, Cut(Printable(u.Sentence()), 500))
	}
	for _, n := range r.Networks {
		n.Agent = Cut(Printable(n.Agent), 200)
		d.Networks = append(d.Networks, n)
	}
	for _, z := range r.affected() { // the page opens on the first
		d.Zones = append(d.Zones, z.page(r, max(fewSteps, min(daySteps, allSteps/len(r.Zones)))))
	}
	return d
}

func (z *Zone) page(r *Result, steps int) *pageZone {
	p := &pageZone{
		Name: Cut(Printable(z.Name), 100), Limit: z.Limit, Key: Cut(Printable(z.Key), 300), Window: z.Window, Length: windowText(z.Window),
		DryRun: z.DryRun, Requests: z.Requests, Keys: z.Keys, Refused: z.Refused, KeysRefused: z.KeysRefused,
		Peaks: ranks(z.Peaks), Names: []string{}, Top: []*pageKey{}, Networks: z.Networks, WhatIf: z.WhatIf,
	}
	if len(r.Zones) > 1 {
		p.Beside = otherZones
	}
	if z.NotJudged > 0 {
		p.NotJudged = Cut(Printable(fmt.Sprintf("not judged: %s (%s)", z.WhyNotJudged, count(z.NotJudged, "request"))), 300)
	} else if z.Requests == 0 {
		p.NotJudged = Cut("no request met this zone"+(&report{Result: r}).hosts(), 600)
	}
	if z.FirstRefused != nil {
		p.FirstRefused = z.FirstRefused.UnixMilli()
	}
	if b := z.Busiest; b != nil {
		p.Busiest = &Peak{Key: Cut(Printable(b.Key), 100), Used: b.Used}
		if most := z.Most(); most > 0 && b.Used <= most {
			p.Headroom = percent(most-b.Used, most)
		}
	}
	day := z.Series.coarse(steps)
	p.Day = pageSeries{day.Start.UnixMilli(), day.Step.Milliseconds(), day.Admitted, day.Refused}
	for _, name := range z.PeakKeys[:min(len(z.PeakKeys), pageNames*steps/daySteps)] {
		p.Names = append(p.Names, Cut(Printable(name), 60))
	}
	for _, k := range z.Top[:min(len(z.Top), stripKeys)] {
		s := k.Series.coarse(max(fewCells, stripCells*steps/daySteps))
		p.Strip = pageStrip{s.Start.UnixMilli(), s.Step.Milliseconds(), len(s.Admitted)}
		shown := &pageKey{
			Key: Cut(Printable(cmp.Or(k.Key, "(no key)")), 200), Requests: k.Requests, Refused: k.Refused, First: k.FirstRefused.UnixMilli(),
			Status: k.statuses(), Looks: k.looks(), Agent: Cut(Printable(k.Agent), 200), Admitted: s.Admitted, RefusedIn: s.Refused,
		}
		p.Top = append(p.Top, shown)
	}
	if s := z.Suggestion; s != nil {
		p.Suggestion = &pageSuggestion{s.Limit, Cut(s.title(), 300), make([]string, len(s.Reasons))}
		for i, reason := range s.Reasons {
			p.Suggestion.Reasons[i] = Cut(Printable(reason), 500)
		}
	}
	return p
}

// coarse puts steps together until there are no more than most.
func (s Series) coarse(most int) Series {
	if len(s.Admitted) == 0 {
		return Series{Start: s.Start, Step: max(s.Step, time.Minute), Admitted: []int64{0}, Refused: []int64{0}}
	}
	together := (len(s.Admitted) + most - 1) / most
	n := (len(s.Admitted) + together - 1) / together
	made := Series{Start: s.Start, Step: s.Step * time.Duration(together), Admitted: make([]int64, n), Refused: make([]int64, n)}
	for i := range s.Admitted {
		made.Admitted[i/together] += s.Admitted[i]
		made.Refused[i/together] += s.Refused[i]
	}
	return made
}

// ranks returns where the peaks of the sorted clients change. The busiest are exact; of the others only
// so many are taken that the logarithmic picture shows no difference.
func ranks(peaks []int64) [][2]int64 {
	all := [][2]int64{}
	next, factor := 0.0, math.Pow(float64(max(len(peaks), 2)), 1.0/moreRanks)
	for i, peak := range peaks {
		if len(all) > 0 && all[len(all)-1][1] == peak || i >= exactRanks && float64(i) < next {
			continue
		}
		all = append(all, [2]int64{int64(i) + 1, peak})
		next = float64(i) * factor
	}
	return all
}
