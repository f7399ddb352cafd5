//go:build deep

package redisstore_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// decideOne has a store decide one check.
func decideOne(s *redisstore.Store, c store.Check) (algorithms.Decision, error) {
	var d [1]algorithms.Decision
	err := s.Take(context.Background(), []store.Check{c}, d[:])
	return d[0], err
}

// TestLendColdKeys: a key that comes rarely goes the way of a zone without lend. Each of its
// requests is one call, and nothing is held of it.
func TestLendColdKeys(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redisstore.Options{Address: server.Addr()})
	rule := storetest.Rule(t, "z", "token_bucket", algorithms.Limit{Events: 10, Window: 24 * time.Hour, Hold: 2 * time.Second})
	before := calls(t, server)
	for n := range 150 {
		if _, err := decideOne(s, store.Check{Rule: rule, Key: strconv.Itoa(n % 75), Cost: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if spared := s.Stats().Spared; spared != 0 {
		t.Errorf("%d requests were spared", spared)
	}
	if made := calls(t, server) - before; made < 149 || made > 151 {
		t.Errorf("%d calls for 150 requests", made)
	}
	states := server.Admin().Keys(context.Background(), "*:token_bucket.*").Val()
	for _, key := range states {
		if n := server.Admin().StrLen(context.Background(), key).Val(); n != 36 {
			t.Errorf("the state of %s has %d bytes", key, n)
		}
	}
	if len(states) != 75 {
		t.Errorf("%d states of 75 keys", len(states))
	}
}
