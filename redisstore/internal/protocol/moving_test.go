//go:build deep

package protocol

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
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
		_, b := ask(op)
		must(t, node.Do(ctx, b.CallText(script)...).Err())
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
	must(t, node.ZAdd(ctx, alive, redis.Z{Score: 1, Member: "gone"}).Err())
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

// TestErrorsOfScripts: an error that a script meets begins with Redis's own word, whichever script and form
// of a call it is, and has the kind of that word. By it go-redis knows a master that became a replica, too.
func TestErrorsOfScripts(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	unsaved := filepath.Join(t.TempDir(), "unsaved")
	for word, c := range map[string]struct {
		kind   string
		breaks func(s *redistest.Server, admin *redis.Client)
	}{
		"OOM": {store.FailureOOM, func(s *redistest.Server, _ *redis.Client) { s.Configure("maxmemory", "1") }},
		"READONLY": {store.FailureReadonly, func(_ *redistest.Server, admin *redis.Client) {
			if err := admin.ReplicaOf(ctx, "127.0.0.1", "1").Err(); err != nil {
				t.Error(err)
			}
		}},
		"NOREPLICAS": {store.FailureOther, func(s *redistest.Server, _ *redis.Client) { s.Configure("min-replicas-to-write", "1") }},
		"MISCONF": {store.FailureOther, func(s *redistest.Server, admin *redis.Client) {
			if err := os.Mkdir(unsaved, 0o700); err != nil {
				t.Error(err)
			}
			s.Configure("dir", unsaved)
			s.Configure("save", "3600 1000000")
			if err := os.Remove(unsaved); err != nil {
				t.Error(err)
			}
			if err := admin.BgSave(ctx).Err(); err != nil {
				t.Error(err)
			}
			patient.Until(t, "the failure of the save", func() bool {
				return strings.Contains(admin.Info(ctx, "persistence").Val(), "rdb_last_bgsave_status:err")
			})
		}},
		"": {store.FailureAuth, func(_ *redistest.Server, admin *redis.Client) {
			if err := admin.Do(ctx, "acl", "setuser", "default", "-get", "-mget", "-llen", "-lindex", "-zcount").Err(); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(c.kind+word, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, redistest.WithArgs("--enable-protected-configs", "yes"))
			client := redis.NewClient(&redis.Options{Addr: server.Addr()})
			defer client.Close()
			script := NewScript(nil)
			must(t, client.ScriptLoad(ctx, script.Text).Err())
			calls := everyForm(t, script)
			c.breaks(server, server.Admin())
			for name, call := range calls {
				reply, err := client.Do(ctx, call...).Text()
				if c.kind == store.FailureAuth && strings.Contains(reply, "\x01\x00") && ReadError(reply).LacksRight() {
					continue // each of several groups has its own error
				}
				if renews := name == "a renewal" && c.kind == store.FailureOOM; err == nil || renews {
					if err == nil != renews { // it needs no memory
						t.Errorf("%s: %v", name, err)
					}
					continue
				}
				e := ReadError(err.Error())
				if !strings.HasPrefix(err.Error(), word) || e.Failure() != c.kind || !e.FromScript() {
					t.Errorf("%s: %v is of kind %s", name, err, e.Failure())
				}
				if writes := c.kind != store.FailureAuth; e.RefusesWrite() != writes || e.MayHaveRun() == writes || e.LacksRight() == writes {
					t.Errorf("%s: %v: refuses to write: %v, may have run: %v, lacks a right: %v", name, err, e.RefusesWrite(), e.MayHaveRun(), e.LacksRight())
				}
				if redis.IsReadOnlyError(err) != (word == "READONLY") {
					t.Errorf("%s: go-redis takes %v for another error", name, err)
				}
			}
		})
	}
}

// everyForm returns the commands of calls of each form that charge.
func everyForm(t *testing.T, script *Script) map[string][]any {
	t.Helper()
	rule := func(algorithm string) *store.Rule {
		return storetest.Rule(t, algorithm, algorithm, storetest.Limit(algorithm, 5, time.Hour))
	}
	bucket, window, log, slots := rule("token_bucket"), rule("fixed_window"), rule("sliding_window_log"), rule("concurrency")
	charge := func(rule *store.Rule) Op { return op(rule, Decide, storetest.LeaseID(rule)) }
	late := EncodeAdjustment(&store.Adjustment{At: storetest.Start, Delta: 1})
	ruled := charge(bucket)
	ruled.KeyRules = &KeyRules{Override: "override", BanState: "ban", KeyRules: &store.KeyRules{Ban: &store.Ban{For: time.Hour, After: 1, Within: time.Hour}}}
	calls := make(map[string][]any)
	for name, ops := range map[string][]Op{
		"one counter":                {charge(bucket)},
		"counters":                   {charge(bucket), charge(window)},
		"a log":                      {charge(log)},
		"a log and a counter":        {charge(log), charge(window)},
		"slots":                      {charge(slots)},
		"a renewal":                  {op(slots, Renew, "lease")},
		"a late cost of a counter":   {op(bucket, Adjust, late)},
		"a late cost of a log":       {op(log, Adjust, late)},
		"a counter with an override": {ruled},
		"a log beside key rules":     {ruled, charge(log)},
		"a slot beside a counter":    {charge(slots), charge(bucket)},
	} {
		_, b := ask(ops...)
		calls[name] = b.Call(script)
	}
	return calls
}
