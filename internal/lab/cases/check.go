package cases

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/dustin/go-humanize"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

// checker collects what does not hold of one step.
type checker struct {
	*sent
	x        *exchange // the last one
	failures []Failure
}

// check returns what does not hold of some requests.
func (s *sent) check() []Failure {
	c := &checker{sent: s, x: s.all[len(s.all)-1]}
	for _, x := range s.all {
		if x.err != nil {
			c.fail(x, "", x.err.Error())
			return c.failures
		}
	}
	c.counts()
	for _, check := range s.step.Request.Expect.last {
		check(c)
	}
	return c.failures
}

// want notes that the last request is not as expected, if it is not.
func (c *checker) want(as bool, expected, got string) {
	if !as {
		c.fail(c.x, expected, got)
	}
}

// fail notes that a request is not as expected.
func (c *checker) fail(x *exchange, expected, got string) {
	step := x.request.Method + " " + x.url
	if n := len(c.all); n > 1 {
		step += fmt.Sprintf(", the %s of %d", humanize.Ordinal(slices.Index(c.all, x)+1), n)
	}
	if at := since(x.at); at != "0s" {
		step += ", at " + at
	}
	c.failures = append(c.failures, Failure{Line: c.step.Line, Step: step, Expected: expected, Got: got, State: x.state()})
}

// counts checks how many requests pass and are refused, and who refuses.
func (c *checker) counts() {
	e := &c.step.Request.Expect
	var passed, refused []*exchange
	for _, x := range c.all {
		if x.Refused {
			refused = append(refused, x)
		} else {
			passed = append(passed, x)
		}
	}
	if !c.count(e.Pass, passed, refused, "passes", "pass") || !c.count(e.Refused, refused, passed, "is refused", "are refused") || e.By == "" {
		return
	}
	if len(refused) == 0 {
		refused = []*exchange{c.x}
	}
	if i := slices.IndexFunc(refused, func(x *exchange) bool { return x.by() != e.By }); i >= 0 {
		c.fail(refused[i], "refused by "+e.By, refused[i].said())
	}
}

// count checks how many requests are of a kind. The request that is shown is the first of the others, if there should be
// more of the kind, and else the last one.
func (c *checker) count(want *int, got, others []*exchange, one, many string) bool {
	n := len(c.all)
	if want == nil || *want == len(got) || *want < 0 && len(others) == 0 {
		return true
	}
	wanted, x := *want, c.x
	if wanted < 0 {
		wanted = n
	}
	if len(got) < wanted && len(others) > 0 {
		x = others[0]
	}
	switch by := c.step.Request.Expect.By; {
	case n > 1:
		c.fail(x, fmt.Sprintf("%d of %d %s", wanted, n, many), fmt.Sprintf("%d of %d %s; this one: %s", len(got), n, many, x.said()))
	case wanted == 0:
		c.fail(x, "not that it "+one, x.said())
	case by != "":
		c.fail(x, "it "+one+" by "+by, x.said())
	default:
		c.fail(x, "it "+one, x.said())
	}
	return false
}

// decisionOf returns the decision in a zone; nil if it has asked no store, so that there are no numbers.
func decisionOf(v *trial.Visit) *algorithms.Decision {
	if v.Asked == nil {
		return nil
	}
	return &v.Asked.Decision
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
	status := strconv.Itoa(x.response.status)
	switch {
	case !x.Refused:
		return "it passes, with status " + status
	case x.by() == "":
		return "refused (" + outcome.Names[x.Refusal.Outcome] + "), with status " + status
	}
	text := "refused by " + x.by() + ", with status " + status
	if after := x.response.sent.Get("Retry-After"); after != "" {
		text += " and Retry-After " + after
	}
	return text
}
