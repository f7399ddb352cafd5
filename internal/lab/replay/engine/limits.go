package engine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/config"
	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
)

// attempt is another limit to try in a zone, with what it refuses.
type attempt struct {
	replay.WhatIf
	zone  string
	limit config.Limit
	keys  map[string]bool // that it refuses
}

// attemptOf returns the attempt of a limit.
func attemptOf(zone string, l *config.Limit) *attempt {
	_, seconds := window(l)
	return &attempt{
		zone: zone, limit: *l, keys: make(map[string]bool),
		WhatIf: replay.WhatIf{Limit: labelOf(l), Events: l.MaxEvents.Number, Window: seconds},
	}
}

// count counts a request of a key that the limit refuses. At most so many keys are told apart.
func (t *attempt) count(key string, maxKeys int) {
	if t.Refused++; !t.keys[key] && len(t.keys) < maxKeys {
		t.keys[strings.Clone(key)] = true
	}
}

// newAttempt returns the limit that is to be tried.
func newAttempt(zones map[string]*zone.Zone, try replay.Try) (*attempt, error) {
	z := zones[try.Zone]
	if z == nil {
		return nil, fmt.Errorf("no zone %q; the zones are %s", try.Zone, strings.Join(slices.Sorted(maps.Keys(zones)), ", "))
	}
	wanted, err := config.ParseText(try.Rate)
	if err != nil {
		return nil, err
	}
	if z.MaxEvents == nil {
		return nil, fmt.Errorf("zone %q has only the limits of its plans: try them in a copy of the config", z.Name)
	}
	l := wanted.Over(&z.Limit)
	if _, err = z.With(l); err == nil && l.Varies() {
		err = errors.New("the limit depends on the request")
	}
	if err != nil {
		return nil, fmt.Errorf("rate %q: zone %q: %w", try.Rate, z.Name, err)
	}
	made := attemptOf(z.Name, &l)
	if strings.Contains(try.Rate, " ") {
		made.Limit = try.Rate
	}
	return made, nil
}

// labelOf returns the numbers of a limit, as "100/1m".
func labelOf(l *config.Limit) string {
	if l.MaxEvents == nil {
		return "plans"
	}
	per, _ := window(l)
	return l.MaxEvents.String() + per
}

// window returns the window of a limit as the config writes it, as "/1m", and its length in seconds. Slots have none.
func window(l *config.Limit) (per string, seconds float64) {
	if config.CountsSlots(l.Algorithm) {
		return "", 0
	}
	return "/" + l.Window.Format(), l.Window.Length().Seconds()
}

const (
	// maxCurve bounds the limits of all curves together, and minCurve those of a curve.
	maxCurve = 24
	minCurve = 6
)

// suggest suggests a limit by what keys have used, and returns the limits to try in a second pass. There are so many zones.
func (z *zoneTally) suggest(o *replay.Options, zones int) (all []*attempt) {
	var keys []*keyTally
	for _, k := range z.keys {
		if k.peak.most > 0 {
			keys = append(keys, k)
		}
	}
	why := ""
	switch {
	case z.Own.Fixed() == nil:
		why = "its limit depends on the request"
	case len(keys) == 0:
		why = "no request was charged in this zone"
	}
	if why != "" {
		z.report.Suggestion = &replay.Suggestion{Failure: why, Reasons: []string{}}
		return nil
	}
	s := sizesOf(keys, func(k *keyTally) int64 { return k.peak.most })
	per, _ := window(&z.Limit)
	made := s.suggest(per)
	if made.Limit == "" && 0 < z.window && z.window < time.Hour.Microseconds() {
		hours := sizesOf(keys, func(k *keyTally) int64 { return k.hourly.most })
		made.Reasons = append(made.Reasons, hours.inAnHour(z.Name)...)
	}
	z.report.Suggestion = made
	tried := make(map[int64]*attempt)
	add := func(curve bool, limits ...int64) { // which grow
		for i, events := range limits {
			l := z.Limit
			l.MaxEvents = &config.Amount{Number: events}
			refuses := i == 0 || limits[i-1] < s.peaks[len(s.peaks)-1] // the one before refuses somebody
			// A limit that the algorithm cannot have is not tried.
			if _, err := z.With(l); err == nil && refuses && tried[events] == nil {
				tried[events] = attemptOf(z.Name, &l)
				tried[events].Curve = curve
			}
		}
	}
	add(false, s.reference, s.limit, round(2*s.limit), round(4*s.limit))
	if o.Curve {
		add(true, curve(s.peaks, max(minCurve, maxCurve/zones))...)
	}
	for _, events := range slices.Sorted(maps.Keys(tried)) {
		all = append(all, tried[events])
	}
	return all
}

// curve returns round numbers from the median of the sorted peaks to the largest, at most n.
func curve(peaks []int64, n int) (limits []int64) {
	for at := round(peaks[len(peaks)/2]); ; at = round(at + 1) {
		limits = append(limits, at)
		if at >= peaks[len(peaks)-1] {
			break
		}
	}
	every, kept := (len(limits)+n-1)/n, limits[:0]
	for i, at := range limits { // the last one is among them
		if (len(limits)-1-i)%every == 0 {
			kept = append(kept, at)
		}
	}
	return kept
}

// sizes are what keys have used at most of any window, counted as if nothing had been refused.
type sizes struct {
	peaks      []int64 // sorted
	median     int64   // half of the keys have a peak of at most this
	p99        int64   // 99 % of the keys have a peak of at most this; of few keys, all but one
	people     int     // keys that look like people
	shared     int     // those of them that look like several
	peopleMost int64   // 99.9 % of people, and all that look like several, have a peak of at most this

	limit     int64    // the smallest round number that is at least peopleMost and twice p99
	reference int64    // the smallest round number that is at least p99
	above     int      // keys whose peak is above limit
	highest   []string // the first few of them
}

const maxHighest = 5

// sizesOf measures what keys have used. It sorts them.
func sizesOf(keys []*keyTally, used func(*keyTally) int64) (s sizes) {
	slices.SortFunc(keys, func(a, b *keyTally) int { return cmp.Or(cmp.Compare(used(a), used(b)), cmp.Compare(b.key, a.key)) })
	var people, shared []int64
	for _, k := range keys {
		s.peaks = append(s.peaks, used(k))
		signs, several := k.looks()
		if signs != nil {
			people = append(people, used(k))
		}
		if several {
			shared = append(shared, used(k))
		}
	}
	s.people, s.shared = len(people), len(shared)
	s.median, s.p99 = percentile(s.peaks, 500), percentile(s.peaks, 990)
	if n := len(keys); 1 < n && n < enoughClients {
		s.p99 = s.peaks[n-2]
	}
	s.peopleMost = max(percentile(people, 999), percentile(shared, 1000))
	s.limit, s.reference = round(max(s.peopleMost, 2*s.p99)), round(s.p99)
	for _, k := range slices.Backward(keys) {
		if used(k) <= s.limit {
			break
		}
		if s.above++; s.above <= maxHighest {
			s.highest = append(s.highest, k.key)
		}
	}
	return s
}

// percentile returns the peak that so many thousandths of the sorted ones do not exceed.
func percentile(sorted []int64, thousandths int) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*thousandths+999)/1000-1]
}

// steps are the round numbers from 10 to 99, and with zeros all others from 10 up.
var steps = [...]int64{10, 15, 20, 25, 30, 40, 50, 60, 80}

// round returns the smallest round number that is at least n.
func round(n int64) int64 {
	if n <= 10 {
		return max(1, n)
	}
	for scale := int64(1); ; scale *= 10 {
		for _, step := range steps {
			if step*scale >= n {
				return step * scale
			}
		}
	}
}

// enoughClients is how many clients there must be: of fewer, 99 % are all of them.
const enoughClients = 100

var lookBefore = advice.New("replay/suggestion", "before you enforce it, look at who is above it: %s%s")

// suggest makes a suggestion. Per is the window: "/1m", or empty without one.
func (s *sizes) suggest(per string) *replay.Suggestion {
	clients := replay.Plural(int64(len(s.peaks)), "client")
	if len(s.peaks) < enoughClients {
		return &replay.Suggestion{Failure: "too few clients to tell", Reasons: []string{fmt.Sprintf("of the %s, half used at most %s%s, all but one at most %s%s, and nobody more than %s%s",
			clients, replay.Count(s.median), per, replay.Count(s.p99), per, replay.Count(s.peaks[len(s.peaks)-1]), per)}}
	}
	made := &replay.Suggestion{Reasons: []string{fmt.Sprintf("99 %% of the %s used at most %s%s", clients, replay.Count(s.p99), per)}}
	because := func(format string, args ...any) { made.Reasons = append(made.Reasons, fmt.Sprintf(format, args...)) }
	floor := "at least twice the first figure, and at least the second,"
	switch {
	case s.people == 0:
		because("no client looks like a person, so the rule for people is left out")
		floor = "at least twice the first figure"
	case s.shared == 0:
		because("99.9 %% of the %s that look like people used at most %s%s", replay.Count(int64(s.people)), replay.Count(s.peopleMost), per)
	default:
		because("99.9 %% of the %s that look like people, and all %s that look like several, used at most %s%s",
			replay.Count(int64(s.people)), replay.Count(int64(s.shared)), replay.Count(s.peopleMost), per)
	}
	because("the smallest round number that is %s is %s%s; clients above it: %s", floor, replay.Count(s.limit), per, replay.Count(int64(s.above)))
	if s.above == 0 {
		made.Failure = fmt.Sprintf("no client has used more than %s%s", replay.Count(s.limit), per)
		return made
	}
	made.Reasons = append(made.Reasons, lookBefore.With(strings.Join(s.highest, ", "), s.more()).String())
	made.Limit, made.Events = fmt.Sprintf("%d%s", s.limit, per), s.limit
	return made
}

var tryHours = advice.New("replay/hours", "see whom %d/1h would refuse, with --try '%s=%d/1h'")

// inAnHour says who stands out in an hour, by what clients use in one, with a limit for a zone that is above all others;
// nothing if nobody does.
func (s *sizes) inAnHour(zone string) (said []string) {
	if len(s.peaks) < enoughClients || s.above == 0 {
		return nil
	}
	return []string{fmt.Sprintf("in an hour, %s%s used more than %s, which is at least twice what nearly all use: %s",
		strings.Join(s.highest, ", "), s.more(), replay.Count(s.limit), tryHours.With(s.limit, zone, s.limit))}
}

// more says how many other keys than the highest are above the limit.
func (s *sizes) more() string {
	if n := s.above - len(s.highest); n > 0 {
		return " and " + replay.Count(int64(n)) + " more"
	}
	return ""
}
