package admin

import (
	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// showTop shows the most frequent keys of a zone, or of all zones if the path names none.
func showTop(c *adminCall) error {
	if err := c.checkParameters("by", "n"); err != nil {
		return err
	}
	by := topk.Requests
	switch word := c.query.Get("by"); word {
	case "", sortNames[topk.Requests]:
	case sortNames[topk.Refused]:
		by = topk.Refused
	default:
		return adminError(badRequest, "by must be requests or refused, got %q", word)
	}
	n, err := c.intParameter("n", 20, 1, 1000)
	if err != nil {
		return err
	}
	if c.zone != nil {
		return c.writeJSON(c.zone.top(int(n), by))
	}
	answers := []adminapi.Top{}
	for _, z := range runningZones() {
		answers = append(answers, z.top(int(n), by))
	}
	return c.writeJSON(answers)
}

var sortNames = [...]string{topk.Requests: "requests", topk.Refused: "refused"}

func (z *runningZone) top(n int, by topk.Kind) adminapi.Top {
	entries, since := z.Stats.Keys.Top(n, by)
	answer := adminapi.Top{Zone: z.Name, By: sortNames[by], Keys: make([]adminapi.KeyCount, len(entries))}
	if !since.IsZero() {
		answer.Since = &since
	}
	for i, e := range entries {
		requests, refused := e.Counts[topk.Requests], e.Counts[topk.Refused]
		answer.Keys[i] = adminapi.KeyCount{
			KeyText:  keyText(z.Template, e.Key, e.Length),
			Requests: requests.AtLeast, RequestsError: requests.Error,
			Refused: refused.AtLeast, RefusedError: refused.Error,
		}
	}
	return answer
}
