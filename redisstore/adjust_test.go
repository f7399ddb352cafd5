//go:build deep

package redisstore_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestAdjustmentsThatFail: errors meet adjustments in progress. Adjustments that did not run are
// carried out when all is well again, and those that may have run are not sent again.
func TestAdjustmentsThatFail(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	user := redisstore.Options{Username: "limiter", Password: "s3cret"}
	rights := func(more ...string) redistest.Option {
		return redistest.WithUser("limiter", "s3cret", append(leastACL(t), more...)...)
	}
	grant := func(server *redistest.Server, rules ...string) {
		for _, rule := range rules {
			if err := server.Admin().Do(ctx, "acl", "setuser", "limiter", rule).Err(); err != nil {
				t.Error(err)
			}
		}
	}
	type servers = func(*redistest.Server)
	for _, c := range []struct {
		name        string
		server      redistest.Option
		options     redisstore.Options
		breaks, fix servers
		again       bool  // nothing of it ran, and it is sent again
		count       int64 // the final count of Redis, of 5 that were charged and a refund of 2
		events      int   // and of 5 with a late cost of 3
	}{
		{name: "dead", server: redistest.WithPersistence(), breaks: (*redistest.Server).Kill, fix: (*redistest.Server).Restart, again: true, count: 3, events: 8},
		{name: "frozen", breaks: (*redistest.Server).Freeze, fix: (*redistest.Server).Thaw, count: 3, events: 8},
		{
			name:   "out of memory",
			breaks: func(s *redistest.Server) { s.Configure("maxmemory", "1") },
			fix:    func(s *redistest.Server) { s.Configure("maxmemory", "0") },
			again:  true, count: 3, events: 8,
		},
		{
			name:   "a replica without a master",
			server: redistest.WithArgs("--replica-serve-stale-data", "no"),
			breaks: func(s *redistest.Server) { s.Admin().ReplicaOf(ctx, "127.0.0.1", "1") },
			fix:    func(s *redistest.Server) { s.Admin().ReplicaOf(ctx, "NO", "ONE") },
			again:  true, count: 3, events: 8,
		},
		{
			name:   "another script runs",
			breaks: func(s *redistest.Server) { occupy(t, s) },
			fix:    func(s *redistest.Server) { s.Admin().ScriptKill(ctx) },
			again:  true, count: 3, events: 8,
		},
		{
			name: "no right to run scripts", server: rights(), options: user,
			breaks: func(s *redistest.Server) { grant(s, "-evalsha") },
			fix:    func(s *redistest.Server) { grant(s, "+evalsha") },
			again:  true, count: 3, events: 8,
		},
		{
			// The slot has been given back when the script comes to write the count.
			name: "no right to write counts", server: rights(), options: user,
			breaks: func(s *redistest.Server) { grant(s, "-set", "-setrange") },
			fix:    func(s *redistest.Server) { grant(s, "+set", "+setrange") },
			count:  5, events: 8,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.server == nil {
				c.server = redistest.WithArgs()
			}
			server := redistest.Start(t, c.server)
			c.options.Address = server.Addr()
			if c.name == "frozen" { // which shows only by timeouts
				c.options.Timeout = time.Second
			}
			s := open(t, c.options)
			window := storetest.Rule(t, "count", "fixed_window", algorithms.Limit{Events: 100, Window: time.Hour, Align: algorithms.AlignFirstRequest})
			logged := storetest.Rule(t, "log", "sliding_window_log", algorithms.Limit{Events: 100, Window: time.Hour})
			lent := storetest.Rule(t, "lent", "concurrency", algorithms.Limit{Events: 100, Lease: time.Hour})
			checks := []store.Check{
				{Rule: lent, Cost: 1, LeaseID: storetest.LeaseID(lent)},
				{Rule: logged, Cost: 5},
				{Rule: window, Cost: 5},
			}
			decisions := ask(t, s, checks...)
			late := make([]store.Adjustment, len(checks))
			for i := range checks {
				late[i] = store.Adjustment{Check: checks[i], At: decisions[i].Booked(), Turn: decisions[i].Turn(), Delta: []int64{-1, 3, -2}[i]}
			}
			// First the log, so that none of the scripts begins with a command that may be
			// repeated.
			slices.SortFunc(late, func(a, b store.Adjustment) int { return strings.Compare(b.Rule.Zone(), a.Rule.Zone()) })

			c.breaks(server)
			s.Adjust(late...)
			s.Flush()
			// Late costs go first. Once the outcome of one call is unknown, the other call is not
			// made.
			lost, want := s.Stats().Lost, uint64(0)
			if !c.again {
				want = 1
			}
			if lost != want || s.Waiting() == 0 {
				t.Errorf("%d were given up, want %d; %d wait", lost, want, s.Waiting())
			}
			// A frozen Redis accepts a new connection, and does not answer while that is set up: then nothing was sent.
			if err := attempt(s, window); err == nil || c.again && node.MayHaveRun(err) {
				t.Errorf("may have run: %v, want %v: %v", node.MayHaveRun(err), !c.again, err)
			} else {
				t.Log(err)
			}
			c.fix(server)
			awaitAdjustments(t, s)
			count := counted(t, server, s.Key(window, ""))
			events := int(100 - take(t, s, logged, "", 0).Remaining)
			if count != c.count || events != c.events {
				t.Errorf("counted %d and logged %d, want %d and %d", count, events, c.count, c.events)
			}
			if held := server.Slots(s.Key(lent, "")); held != 0 {
				t.Errorf("%d slots are still held", held)
			}
			if lost := s.Stats().Lost; lost != want {
				t.Errorf("in the end %d were given up, want %d", lost, want)
			}
		})
	}
}

// occupy has Redis run a script without an end.
func occupy(t *testing.T, server *redistest.Server) {
	ctx := context.Background()
	if err := server.Admin().ConfigSet(ctx, "busy-reply-threshold", "1").Err(); err != nil {
		t.Skip(err) // Redis 6.2 has another name for it
	}
	go server.Admin().Eval(ctx, "while true do end", nil)
	patient.Until(t, "Redis to be busy", func() bool { return redis.HasErrorPrefix(server.Admin().Ping(ctx).Err(), "BUSY") })
}
