package trouble_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// class is what a fault means for requests: docs/failure.md promises the same for all faults of a class.
type class string

const (
	harmless   class = "harmless"   // Redis decides all requests
	full       class = "full"       // Redis has no memory, but decides what needs none
	unwritable class = "unwritable" // Redis may not write, but refuses clients that have used up their limit
	unanswered class = "unanswered" // Redis decides nothing, and keeps its counts
	forgotten  class = "forgotten"  // Redis decides nothing, and forgets its counts
	single     class = "single"     // some requests or their replies are lost
	unallowed  class = "unallowed"  // the user may not run a command, which not all requests need
	moved      class = "moved"      // another server, with a copy of the counts, becomes the master
)

// fault is a trouble of Redis.
type fault struct {
	name    string
	class   class
	timeout time.Duration // of a decision, where the fault is a silence; 0 where it answers

	begin, end func(f *fleet)
	each       func(f *fleet, i int) // before each request of instance i during the fault
	doubt      bool                  // calls may have been carried out that were not answered
}

// faults returns all faults.
func faults(t *testing.T) []*fault {
	all := []*fault{
		{name: "OOM", class: full, begin: configure("maxmemory", "1"), end: configure("maxmemory", "0")},
		{name: "READONLY", class: unwritable, begin: command("replicaof", "127.0.0.1", "1"), end: command("replicaof", "no", "one")},
		{name: "NOREPLICAS", class: unwritable, begin: configure("min-replicas-to-write", "9"), end: configure("min-replicas-to-write", "0")},
		{name: "MISCONF", class: unwritable, begin: failSave, end: save},
		{
			name: "MASTERDOWN", class: unanswered,
			begin: both(configure("replica-serve-stale-data", "no"), command("replicaof", "127.0.0.1", "1")),
			end:   both(command("replicaof", "no", "one"), configure("replica-serve-stale-data", "yes")),
		},
		{name: "LOADING", class: unanswered, begin: reload, end: configure("key-load-delay", "0")},
		{name: "BUSY", class: unanswered, begin: occupy, end: command("script", "kill")},
		{name: "NOSCRIPT", class: harmless, each: func(f *fleet, _ int) { command("script", "flush")(f) }},
		{name: "lost request", class: single, doubt: true, each: losing(faultproxy.CutBefore)},
		{name: "lost reply", class: single, doubt: true, each: losing(faultproxy.CutAfter)},
		{
			name: "frozen", class: unanswered, doubt: true, timeout: time.Second,
			begin: func(f *fleet) { f.redis.Freeze() }, end: func(f *fleet) { f.redis.Thaw() },
		},
		{name: "restart empty", class: forgotten, doubt: true, begin: kill, end: func(f *fleet) { f.redis.Restart() }},
		{name: "failover", class: moved, doubt: true, begin: failOver},
	}
	for _, rule := range rights(t) {
		right, ok := strings.CutPrefix(rule, "+")
		if !ok || right == "select" {
			continue
		}
		all = append(all, &fault{
			name: "NOPERM " + right, class: unallowed, doubt: true,
			begin: command("acl", "setuser", user, "-"+right), end: command("acl", "setuser", user, "+"+right),
		})
	}
	for _, f := range all {
		if f.begin == nil {
			f.begin = func(*fleet) {}
		}
		if f.end == nil {
			f.end = func(f *fleet) {
				for _, p := range f.proxies {
					p.Inject(nil)
				}
			}
		}
	}
	return all
}

// rights reads from docs/redis.md which rights a user of Redis needs.
func rights(t *testing.T) []string {
	t.Helper()
	return redistest.DocumentedRights(t, "../../docs/redis.md")
}

func configure(option, value string) func(*fleet) {
	return func(f *fleet) { f.redis.Configure(option, value) }
}

func both(first, second func(*fleet)) func(*fleet) {
	return func(f *fleet) { first(f); second(f) }
}

func command(words ...any) func(*fleet) {
	return func(f *fleet) {
		f.t.Helper()
		if err := f.redis.Admin().Do(context.Background(), words...).Err(); err != nil {
			f.t.Errorf("%v: %v", words, err)
		}
	}
}

// losing has the proxies lose every third request, or its reply.
func losing(what faultproxy.Fault) func(*fleet, int) {
	var n atomic.Int64
	return func(f *fleet, i int) {
		var lost atomic.Bool
		lost.Store(n.Add(1)%3 != 0)
		f.proxies[i].Inject(func(command string) faultproxy.Fault {
			if strings.HasPrefix(command, "eval") && lost.CompareAndSwap(false, true) {
				return what
			}
			return faultproxy.None
		})
	}
}

// kill ends Redis, and what it has saved.
func kill(f *fleet) {
	dump := f.dump()
	f.redis.Kill()
	_ = os.Remove(dump)
}

// failSave has Redis fail to save its data, after which it refuses writes: a file cannot replace a directory.
func failSave(f *fleet) {
	dump := f.dump()
	_ = os.Remove(dump)
	if err := os.Mkdir(dump, 0o700); err != nil {
		f.t.Error(err)
	}
	f.redis.Configure("save", "3600 1000000000")
	f.saves("err")
}

// save has Redis save its data again.
func save(f *fleet) {
	if err := os.Remove(f.dump()); err != nil {
		f.t.Error(err)
	}
	f.saves("ok")
	f.redis.Configure("save", "")
}

// dump is the file in which Redis saves its data.
func (f *fleet) dump() string {
	return filepath.Join(f.redis.Admin().ConfigGet(context.Background(), "dir").Val()["dir"], "dump.rdb")
}

// saves has Redis save its data, which ends in some way.
func (f *fleet) saves(status string) {
	f.t.Helper()
	ctx, admin := context.Background(), f.redis.Admin()
	if err := admin.BgSave(ctx).Err(); err != nil {
		f.t.Error(err)
	}
	patient.Until(f.t, "an attempt to save", func() bool {
		info := admin.Info(ctx, "persistence").Val()
		return strings.Contains(info, "rdb_bgsave_in_progress:0") && strings.Contains(info, "rdb_last_bgsave_status:"+status)
	})
}

// occupy has Redis run a script without an end.
func occupy(f *fleet) {
	f.redis.Configure("busy-reply-threshold", "1")
	go f.redis.Admin().Eval(context.Background(), "while true do end", nil)
	f.answers("BUSY")
}

// reload has Redis load its data so slowly that it loads until the delay ends.
func reload(f *fleet) {
	ctx := context.Background()
	for i := range 60 { // each within the time that a client has for a write
		fill := f.redis.Admin().Pipeline()
		for j := range 100 {
			fill.Set(ctx, fmt.Sprint("filler", 100*i+j), strings.Repeat("x", 2048), 0)
		}
		if _, err := fill.Exec(ctx); err != nil {
			f.t.Fatal(err)
		}
	}
	f.redis.Configure("rdbcompression", "no")
	f.redis.Configure("loading-process-events-interval-bytes", "1024")
	f.redis.Configure("key-load-delay", "20000") // microseconds: two minutes for all
	go f.redis.Admin().Do(ctx, "debug", "reload")
	f.answers("LOADING")
}

// answers waits until Redis answers with an error.
func (f *fleet) answers(prefix string) {
	f.t.Helper()
	patient.Until(f.t, prefix, func() bool {
		return redis.HasErrorPrefix(f.redis.Admin().Get(context.Background(), "none").Err(), prefix)
	})
}

// failOver makes a copy of the master the master, and the master its replica. The instances' address leads to
// the new master, while connections to the old one stay open.
func failOver(f *fleet) {
	ctx := context.Background()
	old, next := f.redis, f.startRedis()
	old.Configure("repl-diskless-sync-delay", "0")
	next.Follow(old)
	writer := old.Admin().Conn() // who waits for its own writes waits for those before
	defer writer.Close()
	patient.Until(f.t, "the replica", func() bool {
		writer.Set(ctx, "written", "", 0)
		n, err := writer.Do(ctx, "wait", 1, 1000).Int()
		return err == nil && n == 1
	})
	for _, p := range f.proxies {
		p.Forward(next.Addr())
	}
	host, port, _ := net.SplitHostPort(next.Addr())
	if err := next.Admin().ReplicaOf(ctx, "no", "one").Err(); err != nil {
		f.t.Fatal(err)
	}
	if err := old.Admin().ReplicaOf(ctx, host, port).Err(); err != nil {
		f.t.Fatal(err)
	}
	f.redis = next
}

// trip sends requests until all instances have noticed that Redis does not answer, so that others do not
// wait for their timeout.
func (f *fleet) trip() {
	var noticed sync.WaitGroup
	for _, s := range f.stores {
		noticed.Go(func() {
			for range 20 {
				if _, err := s.Take("probe", "trip", 1); errors.Is(err, store.ErrUnavailable) {
					return
				}
			}
		})
	}
	noticed.Wait()
}
