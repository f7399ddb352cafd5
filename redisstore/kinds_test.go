//go:build deep

package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestKinds meets each kind of error with which a Redis can decide nothing, and checks that it
// opens the breaker and that the cure closes it. For other errors see full_test.go.
func TestKinds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, c := range []struct {
		kind        string
		server      []redistest.Option
		options     redisstore.Options
		breaks, fix func(*redistest.Server) // fix is nil if only another config helps
	}{
		{store.FailureRefused, nil, redisstore.Options{}, (*redistest.Server).Kill, (*redistest.Server).Restart},
		{store.FailureTimeout, nil, redisstore.Options{Timeout: 50 * time.Millisecond}, (*redistest.Server).Freeze, (*redistest.Server).Thaw},
		{
			store.FailureLoading,
			[]redistest.Option{redistest.WithArgs("--replica-serve-stale-data", "no")},
			redisstore.Options{},
			func(s *redistest.Server) { s.Admin().ReplicaOf(ctx, "127.0.0.1", "1") },
			func(s *redistest.Server) { s.Admin().ReplicaOf(ctx, "NO", "ONE") },
		},
		{
			store.FailureAuth,
			[]redistest.Option{redistest.WithPassword("s3cret")},
			redisstore.Options{Password: "s3cret"},
			func(s *redistest.Server) { s.Configure("requirepass", "other"); disconnect(t, s) },
			nil,
		},
		{
			store.FailureAuth,
			[]redistest.Option{redistest.WithUser("limiter", "s3cret", "~rl:*", "+time", "+get", "+set")},
			redisstore.Options{Username: "limiter", Password: "s3cret"},
			func(*redistest.Server) {},
			nil,
		},
	} {
		t.Run(c.kind, func(t *testing.T) {
			server := redistest.Start(t, c.server...)
			c.options.Address = server.Addr()
			s, rule := open(t, c.options), hourly(t)
			if c.fix != nil {
				patient.Until(t, "an answer", func() bool { return attempt(s, rule) == nil })
			}
			c.breaks(server)
			met, begun := make(map[string]int), time.Now()
			for range 20 {
				err := attempt(s, rule)
				if err == nil {
					t.Fatal("it decides")
				}
				kind := store.Failure(err)
				if kind == store.FailureOther || kind == store.FailureNetwork && met[c.kind] > 0 {
					t.Logf("%s: %v", kind, err)
				}
				met[kind]++
			}
			t.Logf("%v, such as: %v", met, attempt(s, rule))
			// Connections that are open break once. Each half second, one attempt finds out
			// whether Redis is back.
			probes := int(time.Since(begun) / (500 * time.Millisecond))
			if other := met[store.FailureNetwork]; met[c.kind] < 4-other || met[c.kind] > 10+probes || met[store.FailureOpen] < 10-probes || met[store.FailureOther] > 0 {
				t.Errorf("met %v, want %s a few times and then open", met, c.kind)
			}
			if state := s.Breaker(); state == "closed" {
				t.Errorf("the breaker is %s", state)
			}
			if c.fix == nil {
				return
			}
			c.fix(server)
			cured := time.Now()
			patient.Until(t, "an answer after the cure", func() bool { return attempt(s, rule) == nil })
			t.Logf("answers %v after the cure", time.Since(cured))
			if state := s.Breaker(); state != "closed" {
				t.Errorf("the breaker is %s", state)
			}
		})
	}
}

func disconnect(t *testing.T, server *redistest.Server) {
	t.Helper()
	if err := server.Admin().ClientKillByFilter(context.Background(), "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
		t.Error(err)
	}
}
