package redisstore_test

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestProbeClosesTheBreaker: when a probe has passed, the next request is decided, although the breaker was open before.
func TestProbeClosesTheBreaker(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	proxy := faultproxy.Start(t, server.Addr())
	options := at(server)
	options.Address = proxy.Addr()
	s := open(t, options)
	rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 1_000_000, Window: time.Hour})
	for range 3 {
		proxy.Inject(func(string) faultproxy.Fault { return faultproxy.CutBefore })
		patient.Until(t, "the breaker to open", func() bool { return attempt(s, rule) != nil && s.Breaker() == store.BreakerOpen })
		if _, err := s.Probe(t.Context()); err == nil {
			t.Error("a probe passes, although all connections break")
		}
		proxy.Inject(func(string) faultproxy.Fault { return faultproxy.None })
		_, err := s.Probe(t.Context())
		if state := s.Breaker(); err != nil || state != store.BreakerClosed {
			t.Errorf("a probe says %v, and the breaker is %s", err, state)
		}
		if err := attempt(s, rule); err != nil {
			t.Errorf("a request after the probe: %v", err)
		}
	}
}
