//go:build deep

package redisstore_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
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
	must(t, err)
	example, err := os.ReadFile("../examples/compose/redis.conf")
	must(t, err)
	line := regexp.MustCompile("`user default off( [^`]*)?`").FindSubmatch(page)
	if line == nil || !strings.Contains(string(example), "\nuser default off"+string(line[1])+"\n") {
		t.Fatalf("docs/redis.md and examples/compose/redis.conf do not both have the same default user: %q", line)
	}
	// It is on here, because the test looks into Redis as the default user. It may ask whether the server is there.
	rights := append([]string{"--user", "default", "on", "nopass", "+ping", "+hello", "+client"}, strings.Fields(string(line[1]))...)
	server := redistest.Start(t, redistest.WithUser("limiter", "p", leastACL(t)...), redistest.WithUser("looker", "p", "~*", "+@all"),
		redistest.WithArgs(append(rights, "--appendonly", "yes", "--appendfsync", "always")...))
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
			outage.begin(server)
			var all sync.WaitGroup
			for range 16 {
				all.Go(func() {
					for s.Breaker() == store.BreakerClosed {
						_ = attempt(s, rule)
					}
				})
			}
			all.Wait()
			outage.end(server)
			patient.Until(t, "somebody to find out that Redis is back", func() bool { return s.Breaker() == store.BreakerClosed })
			for range 16 {
				all.Go(func() {
					for range 3 {
						if err := attempt(s, rule); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
		})
	}
}

// TestConnectingMayTakeLongerThanADecision: a Redis that is far away answers one call in time,
// but not a new connection and a call together. The store reaches it all the same, and reaches it
// again after the network was slower for a while.
func TestConnectingMayTakeLongerThanADecision(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	far := faultproxy.Start(t, server.Addr())
	options := at(server)
	options.Address, options.Timeout = far.Addr(), 100*time.Millisecond
	// No attempt is refused, however many fail first: a refusal would be remembered, and answered at once.
	rule := storetest.Rule(t, "zone", "token_bucket", algorithms.Limit{Events: 1_000_000, Window: time.Hour})
	s := open(t, options)
	reached := func(when string) {
		t.Helper()
		inARow := 0
		patient.Until(t, when+": five answers in a row", func() bool {
			if inARow++; attempt(s, rule) != nil {
				inARow = 0
				time.Sleep(20 * time.Millisecond) // until a client sends its next request
			}
			return inARow == 5
		})
	}
	far.Delay(60 * time.Millisecond)
	reached("cold")
	far.Delay(300 * time.Millisecond)
	for range 5 {
		if attempt(s, rule) == nil {
			t.Fatal("answered before it could be")
		}
	}
	far.Delay(60 * time.Millisecond)
	reached("after it was slower")
}

// switchover is a set-up in which Sentinels make another server the master although the master is well.
type switchover struct {
	name     string
	replicas int   // min-replicas-to-write
	before   []any // a command for the master
}

// TestSwitchoverLoses measures what the old master still charges when there is a new one. These charges are lost. The
// Sentinels look as rarely as they do by default: they notice within a second that the new master is one, and
// are asked every second. So on an idle machine up to two seconds are lost.
func TestSwitchoverLoses(t *testing.T) {
	patient.BesideOthers(t)
	for _, c := range []switchover{
		{name: "plain"},
		{name: "replicas", replicas: 1},
		{name: "pause", before: []any{"client", "pause", 10_000, "write"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := redistest.StartSentinel(t, nil, nil)
			c.measure(t, g)
		})
	}
}

// measure switches while many clients come, each of which uses up its limit after that.
func (c *switchover) measure(t *testing.T, g *redistest.Sentinel) {
	const clients, limit, rate = 40, 150, 500 // charges a second of all clients
	for _, sentinel := range g.Sentinels() {
		if err := sentinel.Admin().Do(t.Context(), "sentinel", "debug", "info-period", 10_000, "publish-period", 2000, "ask-period", 1000).Err(); err != nil {
			t.Skip(err) // before Redis 7.0 these are as they are
		}
	}
	for _, server := range g.Servers() {
		server.Configure("min-replicas-to-write", strconv.Itoa(c.replicas))
	}
	options := redisstore.Options{MasterName: redistest.MasterName, Addresses: g.Addrs(), Timeout: time.Second}
	l := algorithms.Limit{Events: limit, Window: 1000 * time.Hour}
	rule := storetest.Rule(t, "zone", "fixed_window", l)
	stores := []*redisstore.Store{open(t, options), open(t, options)}
	var admitted, refused, failed atomic.Int64
	stop, done := make(chan struct{}), sync.WaitGroup{}
	for client := range clients {
		done.Go(func() {
			tick := time.NewTicker(clients * time.Second / rate)
			defer tick.Stop()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				switch d, err := try(stores[i%2], rule, strconv.Itoa(client), 1); {
				case err != nil:
					failed.Add(1)
				case d.Allowed:
					admitted.Add(1)
				default:
					refused.Add(1)
				}
			}
		})
	}
	defer done.Wait()
	defer close(stop)
	patient.Until(t, "charges before the switch", func() bool { return admitted.Load() > 2*rate })
	if c.before != nil {
		must(t, g.Master().Admin().Do(context.Background(), c.before...).Err())
	}
	g.Failover()
	patient.Until(t, "the limits to be used up", func() bool { return refused.Load() > 2*rate })
	lost := max(0, admitted.Load()-clients*limit)
	seconds := time.Duration(lost) * time.Second / rate
	t.Logf("%s: %d of %d charges lost, those of %v; %d not decided", c.name, lost, clients*limit, seconds, failed.Load())
	if lost > clients*limit {
		t.Errorf("%d lost, which is more than the limits once more", lost)
	}
	patient.Soon(t, "the switch", seconds, 2500*time.Millisecond)
}
