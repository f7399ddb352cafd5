package replay

import (
	"encoding/json"
	"math"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/say"
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
	longest    = 500 // characters of a text
)

// pageData is what the script of the page reads: the result, with the texts of the report and with what is drawn.
func (r *Result) pageData() ([]byte, error) {
	d := struct {
		*Result
		Zones    []*pageZone `json:"zones"`
		Unknown  []string    `json:"unknown"`
		Bad      string      `json:"bad,omitempty"`
		FirstBad []string    `json:"first_bad,omitempty"`
	}{Result: r, Zones: []*pageZone{}, Unknown: []string{}, Bad: r.notUnderstood(), FirstBad: r.badLines(200)}
	for _, u := range r.Unknown {
		d.Unknown = append(d.Unknown, u.Sentence())
	}
	for _, z := range r.affected() { // the page opens on the first
		d.Zones = append(d.Zones, z.page(r, max(fewSteps, min(daySteps, allSteps/len(r.Zones)))))
	}
	data, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	var all any
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	if err := decoder.Decode(&all); err != nil {
		return nil, err
	}
	return json.Marshal(clean(all))
}

// clean returns a value of JSON in which no text is long, or has what a reader would not see.
func clean(value any) any {
	switch v := value.(type) {
	case string:
		return say.Cut(say.Printable(v), longest)
	case []any:
		for i := range v {
			v[i] = clean(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = clean(v[name])
		}
	}
	return value
}

type pageZone struct {
	*Zone
	Unjudged string     `json:"unjudged,omitempty"`
	Headroom string     `json:"headroom,omitempty"` // of the busiest, as "3.0 %"
	Series   pageSeries `json:"series"`
	Peaks    [][2]int64 `json:"peaks"` // the rank of the first client with a peak, and the peak
	Names    []string   `json:"names"`
	Top      []pageKey  `json:"top"`
	Beside   string     `json:"beside,omitempty"` // what the other zones mean for it
}

type pageKey struct {
	*Key
	Statuses string     `json:"statuses"`
	Looks    string     `json:"looks,omitempty"`
	Series   pageSeries `json:"series"`
}

// pageSeries has its times in milliseconds, since 1970.
type pageSeries struct {
	Start    int64   `json:"start"`
	Step     int64   `json:"step"`
	Admitted []int64 `json:"admitted"`
	Refused  []int64 `json:"refused"`
}

func (z *Zone) page(r *Result, steps int) *pageZone {
	p := &pageZone{Zone: z, Unjudged: r.notJudged(z), Headroom: z.headroom(), Series: z.Series.page(steps), Peaks: ranks(z.Peaks), Names: []string{}, Top: []pageKey{}}
	if len(r.Zones) > 1 {
		p.Beside = otherZones
	}
	for _, name := range z.PeakKeys[:min(len(z.PeakKeys), pageNames*steps/daySteps)] {
		p.Names = append(p.Names, say.Cut(say.Printable(name), 60))
	}
	for _, k := range z.Top[:min(len(z.Top), stripKeys)] {
		p.Top = append(p.Top, pageKey{k, k.statuses(), k.looks(), k.Series.page(max(fewCells, stripCells*steps/daySteps))})
	}
	return p
}

// page is the series in at most so many steps.
func (s Series) page(most int) pageSeries {
	s = s.coarse(most)
	return pageSeries{s.Start.UnixMilli(), s.Step.Milliseconds(), s.Admitted, s.Refused}
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
