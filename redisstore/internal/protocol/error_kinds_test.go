//go:build deep

package protocol

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

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
			if err := client.ScriptLoad(ctx, script.Text).Err(); err != nil {
				t.Fatal(err)
			}
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
	op := func(rule *store.Rule, kind Kind, leaseID string) Op {
		return Op{Rule: rule, Prepared: rule.At(0), Key: rule.Zone(), Cost: 1, Kind: kind, LeaseID: leaseID}
	}
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
		r := new(Request)
		r.Ops = ops
		r.EndGroup()
		r.Expect(len(ops))
		b := NewBatch()
		b.Add(r)
		calls[name] = b.Call(script)
	}
	return calls
}
