package cases

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/walk"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/peek"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

// check returns what does not hold of the requests of a step; nil if all does.
func (s *sent) check() *Failure {
	last, r := s.all[len(s.all)-1], s.step.Request
	for _, x := range s.all {
		if x.err != nil {
			return s.failure(x, "", x.err.Error())
		}
	}
	if f := s.passes(r.Passes(), r.By); f != nil {
		return f
	}
	var expected, got []string
	for _, f := range r.facts {
		if is := f.got(last); is != f.want {
			expected, got = append(expected, f.what+" "+f.want), append(got, f.what+" "+is)
		}
	}
	if expected == nil {
		return nil
	}
	return s.failure(last, strings.Join(expected, ", "), strings.Join(got, ", "))
}

// failure says that a request is not as expected.
func (s *sent) failure(x *exchange, expected, got string) *Failure {
	step := x.request.Method + " " + x.url
	if n := len(s.all); n > 1 {
		step += fmt.Sprintf(", the %s of %d", humanize.Ordinal(slices.Index(s.all, x)+1), n)
	}
	if at := since(x.at); at != "0s" {
		step += ", at " + at
	}
	return &Failure{Line: s.step.Line, Step: step, Expected: expected, Got: got, State: x.state()}
}

// passes checks how many requests pass, and who refuses the others. The request that is shown is the first one that is
// not as expected.
func (s *sent) passes(want int, by string) *Failure {
	var passed, refused []*exchange
	for _, x := range s.all {
		if x.Refused {
			refused = append(refused, x)
		} else {
			passed = append(passed, x)
		}
	}
	n := len(s.all)
	if want >= 0 && len(passed) != want {
		x := append(passed, refused...)[min(want, len(passed))] // the first one too many, or the first one that is refused
		if n == 1 {
			return s.failure(x, [...]string{"it is refused", "it passes"}[want], x.said())
		}
		return s.failure(x, fmt.Sprintf("%d of %d pass", want, n), fmt.Sprintf("%d of %d pass; this one: %s", len(passed), n, x.said()))
	}
	if len(refused) == 0 {
		refused = s.all[n-1:]
	}
	if i := slices.IndexFunc(refused, func(x *exchange) bool { return x.by() != by }); i >= 0 && by != "" {
		return s.failure(refused[i], "refused by "+by, refused[i].said())
	}
	return nil
}

// by returns the zone that has refused the request first; empty if none has.
func (x *exchange) by() string {
	if x.Refusal.Zone == nil {
		return ""
	}
	return x.Refusal.Zone.Name
}

// said says what has come of the request.
func (x *exchange) said() string {
	status := strconv.Itoa(x.response.Code)
	switch {
	case !x.Refused:
		return "it passes, with status " + status
	case x.by() == "":
		return "refused (" + outcome.Names[x.Refusal.Outcome] + "), with status " + status
	}
	text := "refused by " + x.by() + ", with status " + status
	if after := x.responded("Retry-After"); after != none {
		text += " and Retry-After " + after
	}
	return text
}

// responded returns the values of a header of the response.
func (x *exchange) responded(name string) string {
	return cmp.Or(strings.Join(x.response.Result().Header.Values(name), ", "), none)
}

// state says what has happened in each zone, in the words of explain where no limit decides.
func (x *exchange) state() (all []string) {
	for _, v := range x.Visits {
		if why := v.Why(true); why != "" {
			all = append(all, "zone "+v.Zone+" "+why)
		} else {
			all = append(all, "zone "+v.Zone+": "+numbers(v))
		}
	}
	if len(x.Visits) == 0 && x.err == nil {
		all = append(all, "it comes to no rate_limit handler with a zone")
	}
	for _, step := range x.Steps {
		if step.Effect == walk.Assumed {
			all = append(all, step.Handler+" "+step.Note)
		}
	}
	return all
}

// numbers says what a limit has decided.
func numbers(v *trial.Visit) string {
	text := v.Outcome
	if v.Use.Key != "" && v.Found.Key != "" {
		text += ", key " + strconv.QuoteToGraphic(v.Found.Key)
	}
	if v.Asked == nil {
		return text
	}
	d := &v.Asked.Decision
	text += fmt.Sprintf(", %d of %d used (%s)", d.Quota-d.Remaining, d.Quota, peek.DescribeRule(v.Asked.Policy.Rule))
	switch {
	case d.Allowed:
	case d.RetryAfter == algorithms.Never:
		text += ", and it can never pass"
	default:
		text += ", passes again in " + rounded(d.RetryAfter)
	}
	return text
}

func rounded(d time.Duration) string { return duration.Format(d.Round(time.Millisecond)) }
