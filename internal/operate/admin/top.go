package admin

import (
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// showTop shows the most frequent keys of zones.
func showTop(c *adminCall) (any, error) {
	by, n, err := c.readTop()
	if err != nil {
		return nil, err
	}
	return each(c.zones(), func(z *runningZone) adminapi.Top { return z.sumTop(c.view, by, n) }), nil
}

// readTop reads by what keys are sorted, and how many are wanted.
func (c *adminCall) readTop() (by topk.Kind, n int, err error) {
	switch word := c.query.Get("by"); word {
	case "", "requests":
	case "refused":
		by = topk.Refused
	default:
		return by, 0, adminError(badRequest, "by must be requests or refused, got %q", word)
	}
	most, err := c.intParameter("n", 20, 1, 1000)
	return by, int(most), err
}

// top returns up to n keys: without any refusals, none if it is by these.
func (z *runningZone) top(n int, by topk.Kind) adminapi.Top {
	entries, since := z.Stats.Keys.Top(n, by)
	answer := adminapi.Top{Zone: z.Name, Since: since, Keys: make([]adminapi.KeyCount, len(entries))}
	for i, e := range entries {
		answer.Keys[i] = adminapi.KeyCount{
			KeyText: keyText(z.Template, e.Key, e.Length), Plan: e.Plan, DryRun: z.mayTry(e.Key, e.Length > len(e.Key)),
			Requests: e.Counts[topk.Requests].AtLeast, Refused: e.Counts[topk.Refused].AtLeast,
		}
	}
	return answer
}
