package limiter_test

import (
	"context"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// slotNames refuses the first request for a slot, and notes by which names slots are asked for and given back.
type slotNames struct{ asked, given []string }

func (s *slotNames) Take(_ context.Context, checks []store.Check, decisions []algorithms.Decision) error {
	s.asked = append(s.asked, checks[0].LeaseID)
	decisions[0] = algorithms.Decision{Allowed: len(s.asked) > 1, Quota: 1, RetryAfter: 1}
	return nil
}

func (s *slotNames) Adjust(adjustments ...store.Adjustment) {
	for _, a := range adjustments {
		s.given = append(s.given, a.LeaseID)
	}
}

func (s *slotNames) Reset(context.Context, *store.Rule, string) error { return nil }
func (s *slotNames) Close() error                                     { return nil }

// TestWaitingForASlot: each time that a request asks for a slot, it has another name. So what is given back
// late is not the slot that the request has got since.
func TestWaitingForASlot(t *testing.T) {
	s := new(slotNames)
	h := caddytest.Load(t, `{`+caddytest.NewStore(t, func() (store.Store, error) { return s, nil }).Option()+`"rate_limits": {
		"slots": {"algorithm": "concurrency", "max_events": 1, "max_wait": "1h"}
	}}`)
	if status, _ := caddytest.Serve(t, h, "203.0.113.7:1"); status != 200 {
		t.Fatalf("status %d", status)
	}
	if len(s.asked) != 2 || s.asked[0] == s.asked[1] {
		t.Errorf("asked for slots %q", s.asked)
	}
	if len(s.given) != 1 || s.given[0] != s.asked[len(s.asked)-1] {
		t.Errorf("gave %q back of %q", s.given, s.asked)
	}
}
