package admin

import (
	"slices"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// showTop shows the most frequent keys of a zone, or of all zones if the path names none.
func showTop(c *adminCall) (any, error) {
	by, n, err := c.readTop()
	if err != nil {
		return nil, err
	}
	return ofZones(c, runningZones(), func(z *runningZone) adminapi.Top { return z.sumTop(c.view, by, n) }), nil
}

// readTop reads by what keys are sorted, and how many are wanted.
func (c *adminCall) readTop() (by topk.Kind, n int, err error) {
	if word := c.query.Get("by"); word != "" {
		by = topk.Kind(slices.Index(adminapi.Kinds[:], word))
		if by < 0 {
			return by, 0, adminError(badRequest, "by must be requests, refused or dry_run, got %q", word)
		}
	}
	most, err := c.intParameter("n", 20, 1, 1000)
	return by, int(most), err
}

func (z *runningZone) top(n int, by topk.Kind) adminapi.Top {
	entries, unlisted, since := z.Stats.Keys.Top(n, by)
	answer := adminapi.Top{Zone: z.Name, By: adminapi.Kinds[by], Unlisted: unlisted, Keys: make([]adminapi.KeyCount, len(entries))}
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
