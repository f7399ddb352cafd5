package caddyratelimit

import (
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/topk"
)

// topAnswer is what the admin API tells of the keys that come most often.
type topAnswer struct {
	Zone string `json:"zone"`

	// By is what the keys are sorted by: requests or refused.
	By string `json:"by"`

	// Since is when counting began; absent if nothing came of late.
	Since *time.Time `json:"since,omitempty"`

	Keys []talker `json:"keys"`
}

// talker is a key in a list of them. The counts are sure; the errors are how much higher
// they may be.
type talker struct {
	keyText
	Requests      uint64 `json:"requests"`
	RequestsError uint64 `json:"requests_error"`
	Refused       uint64 `json:"refused"`
	RefusedError  uint64 `json:"refused_error"`
}

// showTop is for one zone, or for all where the path names none.
func showTop(c *adminCall) error {
	if err := c.known("by", "n"); err != nil {
		return err
	}
	by := topk.Requests
	switch word := c.query.Get("by"); word {
	case "", kindNames[topk.Requests]:
	case kindNames[topk.Refused]:
		by = topk.Refused
	default:
		return adminError(badRequest, "by must be requests or refused, got %q", word)
	}
	n, err := c.number("n", 20, 1, 1000)
	if err != nil {
		return err
	}
	if c.zone != nil {
		return c.answer(c.zone.top(int(n), by))
	}
	answers := []topAnswer{}
	for _, z := range runningZones() {
		answers = append(answers, z.top(int(n), by))
	}
	return c.answer(answers)
}

var kindNames = [...]string{topk.Requests: "requests", topk.Refused: "refused"}

func (z *runningZone) top(n int, by topk.Kind) topAnswer {
	entries, since := z.tally.Keys.Top(n, by)
	answer := topAnswer{Zone: z.name, By: kindNames[by], Keys: make([]talker, len(entries))}
	if !since.IsZero() {
		answer.Since = &since
	}
	for i, e := range entries {
		requests, refused := e.Counts[topk.Requests], e.Counts[topk.Refused]
		answer.Keys[i] = talker{
			keyText:  newKeyText(e.Key, e.Length),
			Requests: requests.AtLeast, RequestsError: requests.Error,
			Refused: refused.AtLeast, RefusedError: refused.Error,
		}
	}
	return answer
}
