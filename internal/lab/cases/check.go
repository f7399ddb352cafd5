package cases

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

// checker collects what does not hold of one step.
type checker struct {
	*sent
	failures []Failure
}

// check returns what does not hold of some requests.
func (s *sent) check() []Failure {
	c := &checker{sent: s}
	for i, x := range s.all {
		if x.err != nil {
			c.fail(i, "", x.err.Error())
			return c.failures
		}
	}
	c.counts()
	c.refusals()
	c.last()
	c.zones()
	return c.failures
}

// fail notes that request i is not as expected.
func (c *checker) fail(i int, expected, got string) {
	x := c.all[i]
	step := x.request.Method + " " + x.url
	if n := len(c.all); n > 1 {
		step += ", the " + ordinal(i+1) + " of " + strconv.Itoa(n)
	}
	if at := since(x.at); at != "0s" {
		step += ", at " + at
	}
	c.failures = append(c.failures, Failure{Line: c.step.Line, Step: step, Expected: expected, Got: got, State: x.state()})
}

func ordinal(n int) string {
	suffix := "th"
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		suffix = "st"
	case n%10 == 2:
		suffix = "nd"
	case n%10 == 3:
		suffix = "rd"
	}
	return strconv.Itoa(n) + suffix
}

// counts checks how many requests pass and are refused.
func (c *checker) counts() {
	e, n := &c.step.Request.Expect, len(c.all)
	refused := 0
	for _, x := range c.all {
		if x.Refused {
			refused++
		}
	}
	c.count(e.Pass, n-refused, "passes", "pass", func(x *exchange) bool { return x.Refused })
	if len(c.failures) == 0 {
		c.count(e.Refused, refused, "is refused", "are refused", func(x *exchange) bool { return !x.Refused })
	}
}

// count checks one number. The request that is shown is the first that is not of the kind, if there should be
// more of it, and else the last one.
func (c *checker) count(want *int, got int, one, many string, other func(*exchange) bool) {
	n := len(c.all)
	if want == nil || *want == got || *want < 0 && got == n {
		return
	}
	wanted := *want
	if wanted < 0 {
		wanted = n
	}
	i := n - 1
	if first := slices.IndexFunc(c.all, other); got < wanted && first >= 0 {
		i = first
	}
	if n == 1 {
		expected := "it " + one
		if by := c.step.Request.Expect.By; by != "" {
			expected += " by " + by
		}
		if wanted == 0 {
			expected = "not that it " + one
		}
		c.fail(i, expected, c.all[i].said())
		return
	}
	c.fail(i, fmt.Sprintf("%d of %d %s", wanted, n, many), fmt.Sprintf("%d of %d %s; this one: %s", got, n, many, c.all[i].said()))
}

// refusals checks who refuses.
func (c *checker) refusals() {
	by := c.step.Request.Expect.By
	if by == "" || len(c.failures) > 0 {
		return
	}
	any := false
	for i, x := range c.all {
		if any = any || x.Refused; x.Refused && x.by() != by {
			c.fail(i, "refused by "+by, x.said())
			return
		}
	}
	if !any {
		c.fail(len(c.all)-1, "refused by "+by, c.all[len(c.all)-1].said())
	}
}

// last checks the response of the last request.
func (c *checker) last() {
	e, i := &c.step.Request.Expect, len(c.all)-1
	x := c.all[i]
	header := x.response.sent
	if e.Status != 0 && e.Status != x.response.status {
		c.fail(i, "status "+strconv.Itoa(e.Status), x.said())
	}
	if e.RetryAfter != nil {
		if got := header.Get("Retry-After"); got != seconds(*e.RetryAfter) {
			c.fail(i, "Retry-After "+cmp.Or(seconds(*e.RetryAfter), "none"), "Retry-After "+cmp.Or(got, "none"))
		}
	}
	if e.Waits != nil && x.Wait.Round(time.Millisecond) != e.Waits.Round(time.Millisecond) {
		c.fail(i, "it waits "+duration.Format(*e.Waits), "it waits "+duration.Format(x.Wait))
	}
	for _, f := range e.Header {
		values := header.Values(f.Name)
		switch got := strings.Join(values, ", "); {
		case f.Absent && len(values) > 0:
			c.fail(i, "no header "+f.Name, f.Name+": "+got)
		case !f.Absent && len(values) == 0:
			c.fail(i, f.Name+": "+f.Value, "no header "+f.Name)
		case !f.Absent && got != f.Value:
			c.fail(i, f.Name+": "+f.Value, f.Name+": "+got)
		}
	}
	if e.Body != nil && !strings.Contains(x.response.body.String(), *e.Body) {
		c.fail(i, fmt.Sprintf("a body with %q", *e.Body), fmt.Sprintf("%.200q", x.response.body.String()))
	}
}

// seconds returns the value of Retry-After for a wait; empty for none.
func seconds(d time.Duration) string {
	if d < 0 {
		return ""
	}
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// zones checks what is expected of zones.
func (c *checker) zones() {
	i := len(c.all) - 1
	for _, want := range c.step.Request.Expect.Zones {
		z, err := c.all[i].world.zone(want.Zone)
		if err != nil {
			c.fail(i, "", err.Error())
			continue
		}
		v := c.all[i].Visit(want.Zone)
		if v == nil || !v.Met {
			if want.Counts == nil || *want.Counts {
				c.fail(i, "zone "+want.Zone+" counts it", "zone "+want.Zone+" does not")
			}
			continue
		}
		if counts := v.Outcome != outcome.Names[outcome.Exempt]; want.Counts != nil && *want.Counts != counts {
			c.fail(i, "zone "+want.Zone+map[bool]string{true: " counts it", false: " does not count it"}[!counts], v.Outcome)
		}
		if want.Key != nil {
			if key, err := z.Template.FromText(*want.Key); err != nil || key != v.Found.Key {
				c.fail(i, "key "+*want.Key+" in zone "+want.Zone, "key "+v.Found.Key)
			}
		}
		if want.Outcome != "" && want.Outcome != v.Outcome {
			c.fail(i, "outcome "+want.Outcome+" in zone "+want.Zone, v.Outcome)
		}
		if want.DryRun && v.Outcome != outcome.Names[outcome.DryRun] {
			c.fail(i, "zone "+want.Zone+" would refuse it", v.Outcome)
		}
		d := decisionOf(v)
		if d == nil && (want.Used != nil || want.Left != nil) {
			c.fail(i, "a limit of zone "+want.Zone+" that is used", v.Outcome)
			continue
		}
		if want.Used != nil && d.Quota-d.Remaining != *want.Used {
			c.fail(i, fmt.Sprintf("%d used in zone %s", *want.Used, want.Zone), fmt.Sprintf("%d used", d.Quota-d.Remaining))
		}
		if want.Left != nil && d.Remaining != *want.Left {
			c.fail(i, fmt.Sprintf("%d left in zone %s", *want.Left, want.Zone), fmt.Sprintf("%d left", d.Remaining))
		}
	}
}

// decisionOf returns the decision in a zone; nil if nobody has counted, so that there are no numbers.
func decisionOf(v *trial.Visit) *algorithms.Decision {
	if v.Asked == nil || v.Asked.Outcome == outcome.FailedOpen || v.Asked.Outcome == outcome.FailedClosed {
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
