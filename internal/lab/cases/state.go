package cases

import (
	"fmt"
	"strconv"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/admin"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/trial"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/walk"
)

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
		if step.Effect == string(walk.Assumed) {
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
	d := decisionOf(v)
	if d == nil {
		return text
	}
	text += fmt.Sprintf(", %d of %d used (%s)", d.Quota-d.Remaining, d.Quota, admin.DescribeRule(v.Asked.Policy.Rule))
	switch {
	case d.Banned:
		text += ", banned for " + rounded(d.RetryAfter)
	case d.Allowed:
	case d.RetryAfter == algorithms.Never:
		text += ", and it can never pass"
	default:
		text += ", passes again in " + rounded(d.RetryAfter)
	}
	if d.Override != "" {
		text += ", by an override of this limit"
	}
	return text
}

func rounded(d time.Duration) string { return duration.Format(d.Round(time.Millisecond)) }
