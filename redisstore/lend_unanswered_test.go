//go:build deep

package redisstore_test

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestLendUnanswered: where parts are lent, a request of a key that comes often gets no answer. It is refused if its key
// just was, as where nothing is lent.
func TestLendUnanswered(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr())
	s := open(t, redisstore.Options{Address: proxy.Addr(), Timeout: time.Second, DenyCache: time.Minute})
	s.Silence()
	rule := lendingRule(t, "z", "fixed_window", algorithms.Limit{Events: 5, Window: 1000 * time.Hour}, 100*time.Millisecond)
	c := store.Check{Rule: rule, Key: "k", Cost: 1}
	patient.Until(t, "a refusal of a key that comes often", func() bool {
		d, err := decideOne(s, c)
		return err == nil && !d.Allowed && s.LoanEntries() > 0
	})
	proxy.Inject(func(command string) faultproxy.Fault {
		if command == "evalsha" {
			return faultproxy.SwallowReply
		}
		return faultproxy.None
	})
	patient.Until(t, "a request without an answer", func() bool {
		if d, err := decideOne(s, c); err != nil || d.Allowed {
			t.Fatalf("%+v, %v, want a refusal", d, err)
		}
		return proxy.Count(faultproxy.SwallowReply) > 0
	})
}
