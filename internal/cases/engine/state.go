package engine

import (
	"fmt"
	"strconv"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
)

// state says what has happened in each zone, in words.
func (x *exchange) state() (all []string) {
	for i := range x.zones {
		all = append(all, "zone "+x.zones[i].zone.Name+": "+x.zones[i].said())
	}
	if len(x.zones) == 0 && x.err == nil {
		all = append(all, "it comes to no rate_limit handler with a zone")
	}
	return append(all, x.assumed...)
}

// said says what has happened in a zone.
func (v *visit) said() string {
	switch {
	case !v.met && v.reason == "":
		return "does not match"
	case !v.met:
		return "does not match: " + v.reason
	}
	text := outcome.Names[v.outcome]
	if v.zone.Key != "" && v.key != "" {
		text += ", key " + strconv.QuoteToGraphic(v.key)
	}
	if v.reason != "" {
		text += ": " + v.reason
	}
	d := v.decision
	if d == nil {
		return text
	}
	text += fmt.Sprintf(", %d of %d used", d.Quota-d.Remaining, d.Quota)
	if v.limit != "" {
		text += " (" + v.limit + ")"
	}
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
