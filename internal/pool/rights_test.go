package pool_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/backend"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestEachRight: without any of the rights that docs/redis.md lists, except the optional ones, a config that requires its Redis does
// not start and says which right is missing. Others say it in the log when they start, and to doctor.
func TestEachRight(t *testing.T) {
	t.Parallel()
	documented := redistest.DocumentedRights(t, "../../docs/redis.md")
	server := redistest.Start(t)
	commands := []string{""} // all rights that are needed
	for _, word := range documented {
		if command, is := strings.CutPrefix(word, "+"); is && command != "select" { // that is only for db, and connects
			commands = append(commands, command)
		}
	}
	if len(commands) < 20 {
		t.Fatalf("docs/redis.md lists the rights %q", commands)
	}
	for _, command := range commands {
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
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			redis := &backend.RedisStore{Address: []string{server.Addr()}, Username: user, Password: "p", Require: true}
			if err := redis.Provision(caddy.Context{}); err != nil {
				t.Fatal(err)
			}
			ref, err := pool.Acquire(redis)
			if err != nil {
				t.Fatal(err)
			}
			defer ref.Release()
			expectRequired(t, ref, command)
			expectLogged(t, ref, command)
			examined := ref.Store.Store.(store.Observed).Examine(t.Context())
			switch trouble := examined.Servers[0].Err; {
			case command == "":
				if trouble != nil || len(examined.Rights.Missing) > 0 {
					t.Errorf("doctor: %v, %v", trouble, examined.Rights)
				}
			case examined.Rights != nil && slices.Equal(examined.Rights.Missing, []string{command}):
			case trouble != nil && strings.Contains(trouble.Error(), "'"+command+"'"): // it runs no script
			default:
				t.Errorf("doctor learns %v and %v, want %s", trouble, examined.Rights, command)
			}
		})
	}
}

// expectRequired expects that a required store may not be used without a right.
func expectRequired(t *testing.T, ref *pool.Ref, command string) {
	t.Helper()
	err := ref.Require(t.Context())
	switch {
	case command == "" && err != nil:
		t.Errorf("with all rights: %v", err)
	case command != "" && (err == nil || !strings.Contains(err.Error(), "+"+command) || store.Failure(err) != store.FailureAuth):
		t.Errorf("require: %v, want an error of the kind auth that names +%s", err, command)
	}
}

// expectLogged expects that the log names a right that is missing.
func expectLogged(t *testing.T, ref *pool.Ref, command string) {
	t.Helper()
	switch lines := logged(t, ref); {
	case command == "" && lines != "":
		t.Errorf("with all rights: %s", lines)
	case command != "" && !strings.Contains(lines, "+"+command):
		t.Errorf("the log does not name +%s: %s", command, lines)
	}
}

// logged is what the log warns of when a store is opened.
func logged(t *testing.T, ref *pool.Ref) (text string) {
	t.Helper()
	log, lines := observer.New(zapcore.WarnLevel)
	ctx, cancel := context.WithCancel(t.Context())
	var probing sync.WaitGroup
	defer probing.Wait()
	defer cancel()
	over := make(chan struct{})
	probing.Go(func() {
		defer close(over)
		ref.Store.Health.Means("a consequence")
		ref.Probe(ctx, zap.New(log)) // it goes on while the store does not decide
	})
	patient.Until(t, "the first probe", func() bool {
		select {
		case <-over:
			return true
		default:
			return lines.FilterMessage("a consequence").Len() > 0
		}
	})
	for _, line := range lines.All() {
		text += fmt.Sprintf("%s %v\n", line.Message, line.ContextMap()["error"])
	}
	return text
}
