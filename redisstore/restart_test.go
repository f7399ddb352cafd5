//go:build deep

package redisstore_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
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
