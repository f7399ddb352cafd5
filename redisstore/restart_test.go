//go:build deep

package redisstore_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestRestartWithTheDocumentedUsers: a persistent Redis with the users of docs/redis.md comes back with all that it had, for
// as long. It reads its log of commands as the default user, and leaves out the transactions that this user may not run.
func TestRestartWithTheDocumentedUsers(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../examples/compose/redis.conf")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile("`user default off( [^`]*)?`").FindSubmatch(page)
	if line == nil || !strings.Contains(string(example), "\nuser default off"+string(line[1])+"\n") {
		t.Fatalf("docs/redis.md and examples/compose/redis.conf do not both have the same default user: %q", line)
	}
	// It is on here, because the test looks into Redis as the default user. It may ask whether the server is there.
	rights := append([]string{"--user", "default", "on", "nopass", "+ping", "+hello", "+client"}, strings.Fields(string(line[1]))...)
	server := redistest.Start(t, redistest.WithPersistence(), redistest.WithUser("limiter", "p", leastACL(t)...),
		redistest.WithUser("looker", "p", "~*", "+@all"), redistest.WithArgs(rights...))
	looker := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "looker", Password: "p"})
	defer looker.Close()
	s := open(t, redisstore.Options{Address: server.Addr(), Username: "limiter", Password: "p"})
	for _, name := range algorithms.Names() {
		take(t, s, storetest.Rule(t, "zone", name, storetest.Limit(name, 2, time.Hour)), "client", 1)
	}
	dumps := func() map[string]string {
		all := make(map[string]string)
		for _, key := range looker.Keys(t.Context(), "rl:{client}:*").Val() {
			all[key] = fmt.Sprint(looker.Dump(t.Context(), key).Val(), looker.PExpireTime(t.Context(), key).Val())
		}
		return all
	}
	before := dumps()
	if len(before) < len(algorithms.Names()) {
		t.Fatalf("just %d states", len(before))
	}
	server.Restart()
	if after := dumps(); !maps.Equal(before, after) {
		t.Errorf("%d states before the restart, and %d after it, or others", len(before), len(after))
	}
}

// TestBackWithoutARequest: the store finds out that Redis is back without a request. So all of
// the first requests are decided, however many come at once.
func TestBackWithoutARequest(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]struct{ begin, end func(*redistest.Server) }{
		"killed": {(*redistest.Server).Kill, (*redistest.Server).Restart},
		"frozen": {(*redistest.Server).Freeze, (*redistest.Server).Thaw},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			s := open(t, redisstore.Options{Address: server.Addr(), Timeout: time.Second})
			rule := hourly(t)
			patient.Until(t, "an answer", func() bool { return attempt(s, rule) == nil })
			ask := func() error {
				return s.Take(context.Background(), []store.Check{{Rule: rule, Key: "client", Cost: 1}}, make([]algorithms.Decision, 1))
			}
			outage.begin(server)
			var all sync.WaitGroup
			for range 16 {
				all.Go(func() {
					for s.Breaker() == store.BreakerClosed {
						_ = ask()
					}
				})
			}
			all.Wait()
			outage.end(server)
			patient.Until(t, "somebody to find out that Redis is back", func() bool { return s.Breaker() == store.BreakerClosed })
			for range 16 {
				all.Go(func() {
					for range 3 {
						if err := ask(); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
		})
	}
}
