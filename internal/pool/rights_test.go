package pool_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/backend"
	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestMissingRight: without a right that each decision may need, a probe and the log say what to do.
func TestMissingRight(t *testing.T) {
	t.Parallel()
	documented := redistest.DocumentedRights(t, "../../docs/redis.md")
	server := redistest.Start(t)
	for _, command := range []string{"", "eval", "evalsha", "time", "set", "setrange"} {
		user := "without-" + command
		rules := []any{"acl", "setuser", user, "on", ">p"}
		for _, word := range documented {
			rules = append(rules, word)
		}
		if command != "" {
			rules = append(rules, "-"+command)
		}
		if err := server.Admin().Do(t.Context(), rules...).Err(); err != nil {
			t.Fatal(err)
		}
		redis := &backend.RedisStore{Address: []string{server.Addr()}, Username: user, Password: "p"}
		if err := redis.Provision(caddy.Context{}); err != nil {
			t.Fatal(err)
		}
		ref, err := pool.Acquire(redis)
		if err != nil {
			t.Fatal(err)
		}
		probed, lines := probe(t, ref), logged(t, ref)
		switch {
		case command == "" && (probed != nil || lines != ""):
			t.Errorf("with all rights: %v, %s", probed, lines)
		case command != "" && store.Failure(probed) != store.FailureAuth:
			t.Errorf("without +%s: %v, want an error of the kind auth", command, probed)
		case command != "":
			for _, said := range []string{probed.Error(), lines} {
				if _, fix := advice.Split(said); advice.Of(fix.String()) != advice.GiveRights {
					t.Errorf("without +%s: %s", command, said)
				}
			}
		}
		if err := ref.Release(); err != nil {
			t.Error(err)
		}
	}
}

// probe asks the server of a store once.
func probe(t *testing.T, ref *pool.Ref) error {
	_, err := ref.Store.Store.(store.Shared).Probe(t.Context())
	return err
}

// logged is what the log warns of when a store is opened.
func logged(t *testing.T, ref *pool.Ref) (text string) {
	t.Helper()
	log, lines := observer.New(zapcore.InfoLevel)
	ctx, cancel := context.WithCancel(t.Context())
	var probing sync.WaitGroup
	defer probing.Wait()
	defer cancel()
	probing.Go(func() {
		ref.Store.Health.Means("a consequence")
		ref.Probe(ctx, zap.New(log))
	})
	patient.Until(t, "the first probe", func() bool {
		return lines.FilterMessage("a consequence").Len()+lines.FilterMessage("the rate limit store answers").Len() > 0
	})
	for _, line := range lines.All() {
		if line.Level == zapcore.InfoLevel {
			continue
		}
		text += fmt.Sprintf("%s %v\n", line.Message, line.ContextMap()["error"])
	}
	return text
}
