//go:build deep

package protocol

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/lua"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestNoKeyBecomesEmpty: while a slot moves to another node of a Cluster, a script that takes all out of a key may not touch it again.
// So none does, and nothing is lost.
func TestNoKeyBecomesEmpty(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	const log, one, slots, alive = "rl:{k}:log", "rl:{k}:one", "rl:{k}:slots", "rl:{k}:alive"
	from, to, ctx := c.MasterOf(log), c.Nodes()[0], context.Background()
	if from == to {
		to = c.Nodes()[1]
	}
	node, script := from.Admin(), NewScript(nil)
	logs := storetest.Rule(t, "log", "sliding_window_log", algorithms.Limit{Events: 100, Window: time.Hour})
	leases := storetest.Rule(t, "slots", "concurrency", algorithms.Limit{Events: 5, Lease: time.Hour})
	call := func(op Op) {
		t.Helper()
		op.Prepared = op.Rule.At(0)
		b := NewBatch()
		r := &Request{Ops: []Op{op}}
		r.EndGroup()
		r.Expect(1)
		b.Add(r)
		if err := node.Do(ctx, b.CallText(script)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	refund := func(key string, n int64) []string {
		t.Helper()
		var at int64
		if _, err := fmt.Sscan(node.LIndex(ctx, key, 0).Val(), &at); err != nil {
			t.Fatal(err)
		}
		call(Op{Rule: logs, Key: key, Kind: Adjust, LeaseID: EncodeAdjustment(&store.Adjustment{At: at, Delta: -n})})
		return node.LRange(ctx, key, 0, -1).Val()
	}

	call(Op{Rule: logs, Key: one, Cost: 1})
	for range 2 {
		call(Op{Rule: logs, Key: log, Cost: 3})
	}
	call(Op{Rule: leases, Key: slots, Cost: 1, LeaseID: "a"})
	if err := node.ZAdd(ctx, alive, redis.Z{Score: 1, Member: "gone"}).Err(); err != nil {
		t.Fatal(err)
	}
	c.StartMove(c.SlotOf(log), from, to)

	last := strings.Fields(node.LIndex(ctx, log, -1).Val())[0] + " 0 2"
	if left := refund(log, 3); !slices.Equal(left, []string{"0", last}) {
		t.Errorf("after a refund of the first of two charges there are %q", left)
	}
	if left := refund(one, 1); !slices.Equal(left, []string{"0"}) {
		t.Errorf("after a refund of the only charge there are %q", left)
	}
	call(Op{Rule: leases, Key: slots, Kind: Adjust, LeaseID: EncodeAdjustment(&store.Adjustment{Delta: -1, Check: store.Check{LeaseID: "a"}})})
	if n := node.ZCount(ctx, slots, "1", "+inf").Val(); n != 0 {
		t.Errorf("%d slots are held", n)
	}
	if err := node.Eval(ctx, lua.Beat.Text(), []string{alive}, "here", 60_000, 60_000, "").Err(); err != nil {
		t.Error(err)
	}
	if all := node.ZRange(ctx, alive, 0, -1).Val(); len(all) != 1 || all[0] != "here" {
		t.Errorf("%v live", all)
	}
}
