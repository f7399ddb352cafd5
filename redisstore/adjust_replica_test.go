//go:build deep

package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestRefundAtAReplicaBehind: a replica that does not know a charge yet, as after a failover, is not believed that
// there is nothing to give back.
func TestRefundAtAReplicaBehind(t *testing.T) {
	t.Parallel()
	for _, name := range algorithms.Names() {
		if name == "concurrency" {
			continue // what is given back of slots is a lease, and not a refund
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			master, replica := redistest.Start(t), redistest.Start(t)
			proxy := faultproxy.Start(t, master.Addr())
			s := open(t, redisstore.Options{Address: proxy.Addr(), Timeout: 10 * time.Second, DenyCache: -1})
			rule := storetest.Rule(t, "zone", name, storetest.Limit(name, 9, 24*time.Hour))
			d := take(t, s, rule, "client", 1)
			if err := replica.Admin().ReplicaOf(ctx, "127.0.0.1", "1").Err(); err != nil {
				t.Fatal(err)
			}
			proxy.Forward(replica.Addr())
			master.Kill()
			patient.Until(t, "the replica to answer", func() bool {
				d, err := try(s, rule, "client", 0)
				return err == nil && d.Remaining == d.Quota
			})
			s.Adjust(store.Adjustment{Check: store.Check{Rule: rule, Key: "client", Cost: 1}, At: d.Booked(), Turn: d.Turn(), Delta: -1})
			s.Flush()
			if waiting, lost := s.Waiting(), s.Stats().Lost; waiting != 1 || lost != 0 {
				t.Errorf("%d refunds wait and %d are lost, want 1 and 0", waiting, lost)
			}
			if err := replica.Admin().ReplicaOf(ctx, "no", "one").Err(); err != nil {
				t.Fatal(err)
			}
			patient.Until(t, "the refund to be sent", func() bool { s.Flush(); return s.Waiting() == 0 })
		})
	}
}
