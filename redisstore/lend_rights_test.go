//go:build deep

package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestLendRightsTakenAway: whatever right a user loses while parts of a log are lent, what is lent stays in
// Redis. So no request passes beyond the limit once the right is back.
func TestLendRightsTakenAway(t *testing.T) {
	t.Parallel()
	const limit = 40
	server, one := limited(t)
	if server.Admin().Do(t.Context(), "acl", "dryrun", "default", "get", "k").Err() != nil {
		t.Skip("Redis 6 does not tell a script what it may do")
	}
	two := open(t, redisstore.Options{Address: server.Addr(), Username: "limiter", Password: "s3cret", DenyCache: -1})
	for _, right := range leastACL(t) {
		if !strings.HasPrefix(right, "+") {
			continue
		}
		rule := lendingRule(t, right, "sliding_window_log", lasting(t, "sliding_window_log", limit).Limit(), 10*time.Second)
		c := store.Check{Rule: rule, Key: "k", Cost: 1}
		passed := int64(0)
		ask := func(s *redisstore.Store) error {
			d, err := decideOne(s, c)
			if err == nil && d.Allowed {
				passed++
			}
			return err
		}
		patient.Until(t, "a loan", func() bool {
			if err := ask(one); err != nil {
				t.Fatal(err)
			}
			return one.Stats().Lent[right] > 2
		})
		allow := func(rule string) {
			if err := server.Admin().Do(t.Context(), "acl", "setuser", "limiter", rule).Err(); err != nil {
				t.Fatal(err)
			}
		}
		allow("-" + right[1:])
		for range 4 {
			_ = ask(two)
		}
		allow(right)
		for _, s := range []*redisstore.Store{one, two} {
			patient.Until(t, "an answer", func() bool { return ask(s) == nil })
		}
		for range 2 * limit {
			_, _ = ask(two), ask(one)
		}
		if passed > limit {
			t.Errorf("without %s for a while: %d passed of %d", right, passed, limit)
		}
	}
}
