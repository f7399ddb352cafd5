package redisstore_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestAddressMovesToTheNewMaster: an address leads to another server since a switchover, and the connections to the old
// master live on. The first answer that says so has all of them given up. It fails no request if nothing was carried out by then, and one
// otherwise.
func TestAddressMovesToTheNewMaster(t *testing.T) {
	t.Parallel()
	l := algorithms.Limit{Events: 10_000, Window: 1000 * time.Hour}
	for _, c := range []struct {
		name   string
		rule   *store.Rule
		demote func(t *testing.T, old, next *redistest.Server)
		fail   int
	}{
		{"READONLY", ruleOf(t, "zone", "fixed_window", l), func(_ *testing.T, old, next *redistest.Server) { old.Follow(next) }, 0},
		{"READONLY, lend", lendingRule(t, "zone", "fixed_window", l, time.Second), func(_ *testing.T, old, next *redistest.Server) { old.Follow(next) }, 0},
		{"MASTERDOWN", ruleOf(t, "zone", "fixed_window", l), func(t *testing.T, old, _ *redistest.Server) {
			old.Configure("replica-serve-stale-data", "no")
			if err := old.Admin().ReplicaOf(t.Context(), "127.0.0.1", "1").Err(); err != nil {
				t.Fatal(err)
			}
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			old, next := redistest.Start(t), redistest.Start(t, redistest.WithArgs("--repl-diskless-sync-delay", "0"))
			leads := &leads{to: old.Addr()}
			s := open(t, redisstore.Options{Address: "redis:6379", PoolSize: 20, DenyCache: -1, Dial: leads.dial})
			s.Silence()
			check := func(client int) error {
				_, err := decideOne(s, store.Check{Rule: c.rule, Key: fmt.Sprint(client), Cost: 1})
				return err
			}
			if err := check(0); err != nil {
				t.Fatal(err)
			}
			old.Freeze() // so that each command needs a connection of its own
			var commands sync.WaitGroup
			for range 8 {
				commands.Go(func() {
					if _, err := s.Get(context.Background(), c.rule, "client"); err != nil {
						t.Error(err)
					}
				})
			}
			patient.Until(t, "connections", func() bool { return leads.made.Load() >= 8 })
			old.Thaw()
			commands.Wait()
			c.demote(t, old, next)
			leads.move(next.Addr())
			failed := 0
			for client := range 40 {
				if err := check(1000 + client); err != nil {
					t.Log(err)
					failed++
				}
			}
			if failed > c.fail {
				t.Errorf("%d requests failed, with %d connections", failed, leads.made.Load())
			}
		})
	}
}

// leads is where an address leads.
type leads struct {
	made atomic.Int64
	mu   sync.Mutex
	to   string
}

func (l *leads) move(to string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = to
}

func (l *leads) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	l.mu.Lock()
	to := l.to
	l.mu.Unlock()
	defer l.made.Add(1)
	return new(net.Dialer).DialContext(ctx, "tcp", to)
}

// TestReplicaIsNotDialedForEachCall: a server that stays a replica costs few connections.
func TestReplicaIsNotDialedForEachCall(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	if err := server.Admin().ReplicaOf(t.Context(), "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	leads := &leads{to: server.Addr()}
	s := open(t, redisstore.Options{Address: "redis:6379", DenyCache: -1, Dial: leads.dial})
	s.Silence()
	rule := ruleOf(t, "zone", "fixed_window", algorithms.Limit{Events: 10_000, Window: 1000 * time.Hour})
	began, calls := time.Now(), 500
	for range calls {
		if _, err := decideOne(s, store.Check{Rule: rule, Key: "k", Cost: 1}); !redis.HasErrorPrefix(err, "READONLY") {
			t.Fatal(err)
		}
	}
	// In each tenth of a second one call finds out if it still is one, which closes its connection and gives up the others.
	if made, most := leads.made.Load(), 10+4*int64(time.Since(began)/(100*time.Millisecond)); made > most {
		t.Errorf("%d connections for %d calls in %v", made, calls, time.Since(began))
	}
}
