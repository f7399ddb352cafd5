package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

func hourly(t testing.TB) *store.Rule {
	return storetest.Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 100, Window: time.Hour})
}

func attempt(s store.Store, rule *store.Rule) error {
	var d [1]algorithms.Decision
	return s.Take(context.Background(), []store.Check{{Rule: rule, Key: "client", Cost: 1}}, d[:])
}

func TestClosed(t *testing.T) {
	t.Parallel()
	s, rule := open(t, at(redistest.Shared(t))), hourly(t)
	take(t, s, rule, "client", 1)
	closed(t, s)
	closed(t, s) // closing twice does no harm
	if err := attempt(s, rule); !errors.Is(err, store.ErrClosed) {
		t.Errorf("got %v, want %v", err, store.ErrClosed)
	}
}
