package caddyratelimit

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/limit"
)

// Reserve keeps slots for the requests that matter, after Stripe's fleet usage load
// shedder: P. Tarjan, Scaling your API with rate limiters (2017).
type Reserve struct {
	// How many percent of the slots only these requests get, rounded up to whole slots:
	// above 0 and below 100.
	Percent float64 `json:"percent,omitempty"`

	// The requests that matter: those that any of these matcher sets matches. Required.
	MatcherSetsRaw caddyhttp.RawMatcherSets `json:"match,omitempty" caddy:"namespace=http.matchers"`

	matchers caddyhttp.MatcherSets
}

// check judges what the zone has. There need be no reserve.
func (s *Reserve) check(z *Zone) error {
	switch {
	case s == nil:
		return nil
	case !limit.Lends(z.Algorithm):
		return errors.New("reserve is for algorithm concurrency")
	case math.IsNaN(s.Percent) || s.Percent <= 0 || s.Percent >= 100:
		return fmt.Errorf("reserve must be above 0 and below 100 percent, got %v", s.Percent)
	case len(s.MatcherSetsRaw) == 0:
		return errors.New("reserve needs a match: for which requests")
	}
	if err := s.checkLeft(&z.Limit); err != nil {
		return err
	}
	limits := z.Plan.Limits(&z.Limit)
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		l := limits[name]
		if err := s.checkLeft(&l); err != nil {
			return fmt.Errorf("plan %q: %w", name, err)
		}
	}
	return nil
}

// checkLeft rules out that all slots of a limit are reserved.
func (s *Reserve) checkLeft(l *limit.Limit) error {
	if n := l.MaxEvents; limit.Lends(l.Algorithm) && n != nil && n.From == "" && n.Number > 0 && zone.Leave(n.Number, s.Percent) == 0 {
		return fmt.Errorf("reserve: %v %% of %d slots, rounded up, are all of them, so that no other request ever passes: reserve less, or block the others",
			s.Percent, n.Number)
	}
	return nil
}

func (s *Reserve) provision(ctx caddy.Context) error {
	if s == nil {
		return nil
	}
	return loadMatchers(ctx, s, "MatcherSetsRaw", s.MatcherSetsRaw, &s.matchers)
}

// percent is how many percent are reserved. There need be no reserve.
func (s *Reserve) percent() float64 {
	if s == nil {
		return 0
	}
	return s.Percent
}
