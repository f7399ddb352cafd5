package admin

import (
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// showTop shows the most frequent keys of a zone, or of all zones if the path names none.
func showTop(c *adminCall) (any, error) {
	if err := c.checkParameters("by", "n"); err != nil {
		return nil, err
	}
	by, n, err := c.readTop()
	if err != nil {
		return nil, err
	}
	if c.zone != nil {
		return c.zone.sumTop(c.view, by, n), nil
	}
	answers := []adminapi.Top{}
	for _, z := range runningZones() {
		answers = append(answers, z.sumTop(c.view, by, n))
	}
	return answers, nil
}

// readTop reads by what keys are sorted, and how many are wanted.
func (c *adminCall) readTop() (by topk.Kind, n int, err error) {
	if word := c.query.Get("by"); word != "" {
		by = topk.Kind(slices.Index(sortNames[:], word))
		if by < 0 {
			return by, 0, adminError(badRequest, "by must be requests, refused or dry_run, got %q", word)
		}
	}
	most, err := c.intParameter("n", 20, 1, 1000)
	return by, int(most), err
}

var sortNames = [...]string{topk.Requests: "requests", topk.Refused: outcome.NameRefused, topk.DryRun: outcome.Names[outcome.DryRun]}

func (z *runningZone) top(n int, by topk.Kind) adminapi.Top {
	entries, unlisted, since := z.Stats.Keys.Top(n, by)
	answer := adminapi.Top{Zone: z.Name, By: sortNames[by], Unlisted: unlisted, Keys: make([]adminapi.KeyCount, len(entries))}
	if !since.IsZero() {
		answer.Since = &since
	}
	for i, e := range entries {
		requests, refused, dryRun := e.Counts[topk.Requests], e.Counts[topk.Refused], e.Counts[topk.DryRun]
		answer.Keys[i] = adminapi.KeyCount{
			KeyText:  keyText(z.Template, e.Key, e.Length),
			Plan:     e.Plan,
			Requests: requests.AtLeast, RequestsError: requests.Error,
			Refused: refused.AtLeast, RefusedError: refused.Error,
			DryRun: dryRun.AtLeast, DryRunError: dryRun.Error,
		}
	}
	return answer
}
