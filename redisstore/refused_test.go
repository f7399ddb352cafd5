//go:build deep

package redisstore_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// fill fills the memory of a Redis, and drain gives it memory again.
func fill(server *redistest.Server)  { server.Configure("maxmemory", "1") }
func drain(server *redistest.Server) { server.Configure("maxmemory", "0") }

// limited is a server whose only user has the rights that docs/redis.md names, and a store that asks
// it for each request.
func limited(t *testing.T) (*redistest.Server, *redisstore.Store) {
	server := redistest.Start(t, redistest.WithUser("limiter", "s3cret", leastACL(t)...))
	return server, open(t, redisstore.Options{Address: server.Addr(), Username: "limiter", Password: "s3cret", DenyCache: -1})
}

// lasting returns a limit of an algorithm whose window does not end during a test.
func lasting(t *testing.T, name string, events int64) *store.Rule {
	window := 1000 * time.Hour
	if name == "concurrency" {
		window = time.Hour // the longest lease
	}
	return storetest.Rule(t, name, name, storetest.Limit(name, events, window))
}

// TestFullRedisDecides: a Redis without memory refuses clients that have used up their limit, and
// answers peeks. What would be charged fails with an error that says so, is not charged, and opens no breaker.
func TestFullRedisDecides(t *testing.T) {
	t.Parallel()
	server, s := limited(t)
	for _, name := range algorithms.Names() {
		t.Run(name, func(t *testing.T) {
			rule := lasting(t, name, 5)
			take(t, s, rule, "used up", 5)
			take(t, s, rule, "known", 2)
			fill(server)
			defer drain(server)
			for range 20 { // more requests than would open the breaker
				if d := take(t, s, rule, "used up", 1); d.Allowed {
					t.Fatal("the limit is exceeded")
				}
				for _, key := range []string{"new", "known"} {
					if _, err := try(s, rule, key, 1); !errors.Is(err, store.ErrFull) || store.Failure(err) != store.FailureOOM || node.MayHaveRun(err) {
						t.Fatalf("the %s key met %v", key, err)
					}
				}
				if state := s.Breaker(); state != store.BreakerClosed {
					t.Errorf("the breaker is %s", state)
				}
			}
			if n := server.Admin().Exists(t.Context(), s.Key(rule, "new")).Val(); n != 0 {
				t.Error("a key was made that has no room")
			}
			if d := take(t, s, rule, "new", 0); d.Remaining != 5 {
				t.Errorf("a peek at a new key: %+v", d)
			}
			if d := take(t, s, rule, "new", 6); d.Allowed || d.RetryAfter != algorithms.Never {
				t.Errorf("a cost above the limit: %+v", d)
			}
			drain(server)
			if d := take(t, s, rule, "new", 1); d.Remaining != 4 {
				t.Errorf("with memory again: %+v", d)
			}
			if d := take(t, s, rule, "known", 0); d.Remaining != 3 {
				t.Errorf("%d are left, want 3", d.Remaining)
			}
		})
	}
}

// TestMissingRights: a user who lacks one of the rights that docs/redis.md names lets no request pass beyond
// its limit, in any kind of zone. What cannot be decided is an error of the kind auth that says which right is missing. No
// state counts as damaged, and no refund is lost without a word.
func TestMissingRights(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	type kind struct {
		name  string
		rule  *store.Rule
		rules *store.KeyRules
	}
	const limit = 20
	var kinds []kind
	for _, name := range algorithms.Names() {
		kinds = append(kinds, kind{name, lasting(t, name, limit), nil})
	}
	banned := &store.KeyRules{Overrides: true, Ban: &store.Ban{For: time.Hour, After: 3, Within: time.Hour}}
	kinds = append(kinds, kind{"ban", lasting(t, "token_bucket", limit), banned}, kind{"log with ban", lasting(t, "sliding_window_log", limit), banned})
	failed := make(map[string]bool) // for which rights anything failed
	var rights []string
	for _, word := range leastACL(t) {
		if right, ok := strings.CutPrefix(word, "+"); ok && !slices.Contains([]string{"eval", "evalsha", "select"}, right) {
			rights = append(rights, right)
		}
	}
	for _, right := range rights {
		grant(t, server, "without-"+right, append(append([]string{"on", ">p"}, leastACL(t)...), "-"+right)...)
		log, lines := observer.New(zapcore.WarnLevel)
		s := open(t, redisstore.Options{
			Address: server.Addr(), Username: "without-" + right, Password: "p", KeyPrefix: "rl:" + right, DenyCache: -1,
			Logger: func() *zap.Logger { return zap.New(log) },
		})
		for _, k := range kinds {
			passed := int64(0)
			var first *algorithms.Decision
			leaseID := storetest.LeaseID(k.rule)
			for range 2 * limit {
				c := store.Check{Rule: k.rule, Key: k.name, Cost: 1, KeyRules: k.rules, LeaseID: storetest.LeaseID(k.rule)}
				if first == nil {
					c.LeaseID = leaseID
				}
				d, err := decideOne(s, c)
				switch kind := store.Failure(err); {
				case err == nil && d.Allowed:
					passed++
					if first == nil {
						first = &d
					}
				case err == nil:
				case kind == store.FailureAuth || kind == store.FailureOpen:
					failed[right] = true
					expectNamed(t, server, err, right)
				default:
					t.Errorf("%s without +%s: %v", k.name, right, err)
				}
			}
			if passed > limit {
				t.Errorf("%s without +%s: %d passed of %d", k.name, right, passed, limit)
			}
			if first == nil {
				continue
			}
			before, made := s.Stats().Lost, false
			s.Adjust(store.Adjustment{
				Check: store.Check{Rule: k.rule, Key: k.name, Cost: 1, LeaseID: leaseID},
				At:    first.Booked(), Turn: first.Turn(), Delta: -1, Done: func(changed bool) { made = changed },
			})
			s.Flush()
			told := s.Stats().Lost > before || s.Waiting() > 0
			if last := k.rule.Algorithm().Name() == "leaky_bucket"; !last && !made && !told {
				t.Errorf("%s without +%s: a refund is lost without a word", k.name, right)
			}
			failed[right] = failed[right] || told
		}
		for _, line := range lines.FilterMessageSnippet("damaged").All() {
			t.Errorf("without +%s: %s", right, line.Message)
		}
	}
	for _, right := range rights {
		if !failed[right] {
			t.Logf("nothing here fails without +%s", right)
		}
	}
}

// expectNamed expects that an error says which right is missing, or where Redis says it.
func expectNamed(t *testing.T, server *redistest.Server, err error, right string) {
	t.Helper()
	_, fix := advice.Split(err.Error())
	if fix == advice.GiveRights.With("+"+right) {
		return
	}
	log, logErr := server.Admin().ACLLog(t.Context(), 100).Result()
	named := slices.ContainsFunc(log, func(e *redis.ACLLogEntry) bool { return e.Username == "without-"+right && e.Object == right })
	if fix != advice.GiveRights.With("the one that ACL LOG names") || !named {
		t.Errorf("without +%s: %v; ACL LOG has %d entries, %v", right, err, len(log), logErr)
	}
}

// TestRefundRightsTakenAway: whatever right a user loses, a refund in the middle of a log is carried out or fails, and
// what others were charged stays.
func TestRefundRightsTakenAway(t *testing.T) {
	t.Parallel()
	const limit, cost = 100, 2 // charges of more than one event are written again behind the refunded one
	server, s := limited(t)
	allow := func(rule string) { grant(t, server, "limiter", rule) }
	for _, right := range leastACL(t) {
		if !strings.HasPrefix(right, "+") {
			continue
		}
		for n, place := range []int{0, 2, 4, 0} {
			delta := int64([]int{-cost, -cost, -cost, -1}[n])
			rule := lasting(t, "sliding_window_log", limit)
			c := store.Check{Rule: rule, Key: right + strconv.Itoa(n), Cost: cost}
			used := func() int64 {
				peek := c
				peek.Peek = true
				d, err := decideOne(s, peek)
				must(t, err)
				return limit - d.Remaining
			}
			var charges []algorithms.Decision
			for range 5 {
				d, err := decideOne(s, c)
				must(t, err)
				charges = append(charges, d)
			}
			d := charges[place]
			allow("-" + right[1:])
			s.Adjust(store.Adjustment{Check: c, At: d.Booked(), Turn: d.Turn(), Delta: delta})
			s.Flush()
			allow(right)
			s.Flush()
			if got := used(); got < 5*cost+delta || got > 5*cost {
				t.Errorf("%s, charge %d, without %s for a while: %d used of %d after %d", rule.Zone(), place, right, got, 5*cost, delta)
			}
		}
	}
}

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
			must(t, replica.Admin().ReplicaOf(ctx, "127.0.0.1", "1").Err())
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
			must(t, replica.Admin().ReplicaOf(ctx, "no", "one").Err())
			patient.Until(t, "the refund to be sent", func() bool { s.Flush(); return s.Waiting() == 0 })
		})
	}
}

// TestAdjustmentsArePatient: an adjustment has at least as long as a request, the timeout, and a second if that is
// less. What it has not heard of by then is given up.
func TestAdjustmentsArePatient(t *testing.T) {
	t.Parallel()
	for timeout, lost := range map[time.Duration]uint64{time.Minute: 0, 50 * time.Millisecond: 1} {
		proxy := faultproxy.Start(t, redistest.Start(t).Addr())
		s, rule := open(t, redisstore.Options{Address: proxy.Addr(), Timeout: timeout}), hourly(t)
		var d algorithms.Decision
		patient.Until(t, "a charge", func() (ok bool) {
			var err error
			d, err = try(s, rule, "key", 5)
			return err == nil
		})
		proxy.Delay(1200 * time.Millisecond) // both ways of a call are loopback, so this is its time
		s.Adjust(store.Adjustment{Check: store.Check{Rule: rule, Key: "key", Cost: 5}, At: d.Booked(), Turn: d.Turn(), Delta: -2})
		s.Flush()
		if got := s.Stats().Lost; got != lost {
			t.Errorf("with a timeout of %v, %d adjustments are given up, want %d", timeout, got, lost)
		}
	}
}
