//go:build deep

package redisstore_test

import (
	"context"
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
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

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
		rules := append([]any{"acl", "setuser", "without-" + right, "on", ">p"}, anys(leastACL(t))...)
		if err := server.Admin().Do(t.Context(), append(rules, "-"+right)...).Err(); err != nil {
			t.Fatal(err)
		}
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

func anys(texts []string) (all []any) {
	for _, text := range texts {
		all = append(all, text)
	}
	return all
}

// TestRefundRightsTakenAway: whatever right a user loses, a refund in the middle of a log is carried out or fails, and
// what others were charged stays.
func TestRefundRightsTakenAway(t *testing.T) {
	t.Parallel()
	const limit, cost = 100, 2 // charges of more than one event are written again behind the refunded one
	server, s := limited(t)
	allow := func(rule string) {
		if err := server.Admin().Do(t.Context(), "acl", "setuser", "limiter", rule).Err(); err != nil {
			t.Fatal(err)
		}
	}
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
				if err != nil {
					t.Fatal(err)
				}
				return limit - d.Remaining
			}
			var charges []algorithms.Decision
			for range 5 {
				d, err := decideOne(s, c)
				if err != nil {
					t.Fatal(err)
				}
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

// decideOne has a store decide one check.
func decideOne(s *redisstore.Store, c store.Check) (algorithms.Decision, error) {
	var d [1]algorithms.Decision
	err := s.Take(context.Background(), []store.Check{c}, d[:])
	return d[0], err
}
