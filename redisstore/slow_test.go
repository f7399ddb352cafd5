//go:build deep

package redisstore_test

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestConnectingMayTakeLongerThanADecision: a Redis that is far away answers one call in time,
// but not a new connection and a call together. The store reaches it all the same, and reaches it
// again after the network was slower for a while.
func TestConnectingMayTakeLongerThanADecision(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	far := faultproxy.Start(t, server.Addr())
	options := at(server)
	options.Address, options.Timeout = far.Addr(), 100*time.Millisecond
	// No attempt is refused, however many fail first: a refusal would be remembered, and answered at once.
	rule := storetest.Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 1_000_000, Window: time.Hour})
	s := open(t, options)
	reached := func(when string) {
		t.Helper()
		inARow := 0
		patient.Until(t, when+": five answers in a row", func() bool {
			if inARow++; attempt(s, rule) != nil {
				inARow = 0
				time.Sleep(20 * time.Millisecond) // until a client sends its next request
			}
			return inARow == 5
		})
	}
	far.Delay(60 * time.Millisecond)
	reached("cold")
	far.Delay(300 * time.Millisecond)
	for range 5 {
		if attempt(s, rule) == nil {
			t.Fatal("answered before it could be")
		}
	}
	far.Delay(60 * time.Millisecond)
	reached("after it was slower")
}
