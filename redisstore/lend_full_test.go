//go:build deep

package redisstore_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// counters are the algorithms whose states have a fixed size.
var counters = []string{"fixed_window", "leaky_bucket", "sliding_window_counter", "token_bucket"}

// TestLendInAFullRedis: a zone that lends admits exactly its limit when Redis has no more memory, whenever
// that begins, as one that does not lend. Two processes take turns.
func TestLendInAFullRedis(t *testing.T) {
	t.Parallel()
	const limit = 20
	server, one := limited(t)
	two := open(t, redisstore.Options{Address: server.Addr(), Username: "limiter", Password: "s3cret", DenyCache: -1})
	for _, name := range counters {
		for _, before := range []int{1, 3, 8, 10, 14, 19} {
			rule := lendingRule(t, name, name, lasting(t, name, limit).Limit(), 10*time.Second)
			key, passed := string(rune('a'+before)), 0
			ask := func(i int) {
				s := []*redisstore.Store{one, two}[i%2]
				if i < 10 {
					s = one // whose key comes often then
				}
				d, err := decideOne(s, store.Check{Rule: rule, Key: key, Cost: 1})
				if err != nil {
					t.Fatalf("%s, full after %d: request %d met %v", name, before, i, err)
				}
				if d.Allowed {
					passed++
				}
			}
			for i := range before {
				ask(i)
			}
			fill(server)
			for i := before; i < 4*limit; i++ {
				ask(i)
			}
			drain(server)
			if passed != limit {
				t.Errorf("%s, full after %d: %d passed of %d", name, before, passed, limit)
			}
		}
	}
	if _, err := decideOne(one, store.Check{Rule: hourly(t), Key: "well", Cost: 1}); err != nil {
		t.Error(err)
	}
	stays(t, one)
}

// TestLendNewKeysInAFullRedis: a key that comes often and has no state yet, and a charge of a log, fail with
// an error that says that Redis is full, and are not charged.
func TestLendNewKeysInAFullRedis(t *testing.T) {
	t.Parallel()
	server, s := limited(t)
	fill(server)
	for _, name := range append([]string{"sliding_window_log"}, counters...) {
		rule := lendingRule(t, name, name, lasting(t, name, 50).Limit(), 10*time.Second)
		for range 30 {
			if _, err := decideOne(s, store.Check{Rule: rule, Key: "new", Cost: 1}); !errors.Is(err, store.ErrFull) || store.Failure(err) != store.FailureOOM || node.MayHaveRun(err) {
				t.Fatalf("%s: a new key met %v", name, err)
			}
		}
		if n := server.Admin().Exists(t.Context(), s.Key(rule, "new")).Val(); n != 0 {
			t.Errorf("%s: the key was made", name)
		}
	}
	stays(t, s)
}

// TestLendLogInAFullRedis: a log of which parts are lent is decided when Redis is full: refusals and peeks
// hold, and what needs memory is not charged.
func TestLendLogInAFullRedis(t *testing.T) {
	t.Parallel()
	const limit = 40
	server, s := limited(t)
	rule := lendingRule(t, "z", "sliding_window_log", lasting(t, "sliding_window_log", limit).Limit(), 10*time.Second)
	c := store.Check{Rule: rule, Key: "k", Cost: 1}
	passed := int64(0)
	patient.Until(t, "a loan", func() bool {
		d, err := decideOne(s, c)
		if err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		passed++
		return s.Stats().Lent["z"] > 2
	})
	lent := s.Stats().Lent["z"]
	fill(server)
	defer drain(server)
	for {
		_, err := decideOne(s, c)
		if errors.Is(err, store.ErrFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		passed++
	}
	if passed > limit || lent == 0 {
		t.Errorf("%d passed of %d, %d were lent", passed, limit, lent)
	}
	other := open(t, redisstore.Options{Address: server.Addr(), Username: "limiter", Password: "s3cret", DenyCache: -1})
	if d, err := decideOne(other, store.Check{Rule: rule, Key: "k", Cost: limit}); err != nil || d.Allowed {
		t.Errorf("a cost that does not fit: %+v, %v", d, err)
	}
	d, err := decideOne(other, store.Check{Rule: rule, Key: "k", Cost: 1, Peek: true})
	if err != nil || d.Remaining > limit-passed {
		t.Errorf("a peek after %d: %+v, %v", passed, d, err)
	}
	drain(server)
	patient.Until(t, "room", func() bool {
		d, err := decideOne(s, c)
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed {
			passed++
		}
		return !d.Allowed
	})
	if passed > limit {
		t.Errorf("%d passed of %d", passed, limit)
	}
}

// unwritable breaks and mends a Redis so that it cannot write.
var unwritable = map[string]struct{ breaks, mends func(*redistest.Server) }{
	"OOM": {fill, drain},
	"READONLY": {
		func(s *redistest.Server) { s.Admin().ReplicaOf(context.Background(), "127.0.0.1", "1") },
		func(s *redistest.Server) { s.Admin().ReplicaOf(context.Background(), "NO", "ONE") },
	},
	"NOREPLICAS": {
		func(s *redistest.Server) { s.Configure("min-replicas-to-write", "1") },
		func(s *redistest.Server) { s.Configure("min-replicas-to-write", "0") },
	},
}

// TestLendKeepsAdjustments: late costs and refunds in zones that lend wait while Redis cannot write, and are
// carried out once when it can again.
func TestLendKeepsAdjustments(t *testing.T) {
	t.Parallel()
	for fault, f := range unwritable {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			server, s := limited(t)
			for _, name := range append([]string{"sliding_window_log"}, counters...) {
				if name == "leaky_bucket" {
					continue // only its last turn comes back
				}
				rule := lendingRule(t, name, name, lasting(t, name, 10_000).Limit(), 10*time.Second)
				lost := s.Stats().Lost
				for key, delta := range map[string]int64{"late": 5000, "refund": -100} {
					c := store.Check{Rule: rule, Key: key, Cost: 100}
					d, err := decideOne(s, c)
					if err != nil {
						t.Fatal(err)
					}
					f.breaks(server)
					s.Adjust(store.Adjustment{Check: c, At: d.Booked(), Turn: d.Turn(), Delta: delta})
					s.Flush()
					f.mends(server)
					patient.Until(t, "an adjustment", func() bool { s.Flush(); return s.Waiting() == 0 })
					// A part of a token may have come back before it is refunded.
					if got, want := usedOf(t, s, rule, key), 100+delta; got < want || got > want+1 {
						t.Errorf("%s: after %d, %d are used, want %d", name, delta, got, want)
					}
				}
				if s.Stats().Lost > lost {
					t.Errorf("%s: an adjustment was given up", name)
				}
			}
		})
	}
}

// TestLendRefusesWithoutWriting: a Redis that cannot write still refuses a key of which parts are lent if it
// is used up, and answers peeks. What it would charge is an error of its kind, and was not charged.
func TestLendRefusesWithoutWriting(t *testing.T) {
	t.Parallel()
	for fault, f := range unwritable {
		if fault == "OOM" {
			continue
		}
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			server, s := limited(t)
			for _, name := range append([]string{"sliding_window_log"}, counters...) {
				rule := lendingRule(t, name, name, lasting(t, name, 10).Limit(), 10*time.Second)
				for key, n := range map[string]int64{"used up": 10, "left": 4} {
					s.Borrow(t, store.Check{Rule: rule, Key: key, Cost: n}, 1)
				}
				f.breaks(server)
				for range 12 {
					if d, err := decideOne(s, store.Check{Rule: rule, Key: "used up", Cost: 1}); err != nil || d.Allowed {
						t.Fatalf("%s, used up: %+v, %v", name, d, err)
					}
					d, err := decideOne(s, store.Check{Rule: rule, Key: "left", Cost: 1, Peek: true})
					if err != nil || d.Remaining != 6 {
						t.Fatalf("%s, a peek: %+v, %v", name, d, err)
					}
					_, err = decideOne(s, store.Check{Rule: rule, Key: "left", Cost: 1})
					if err == nil || node.MayHaveRun(err) || errors.Is(err, store.ErrFull) {
						t.Fatalf("%s, a charge: %v", name, err)
					}
					stays(t, s)
				}
				f.mends(server)
				patient.Until(t, "a charge", func() bool {
					d, err := decideOne(s, store.Check{Rule: rule, Key: "left", Cost: 1})
					return err == nil && d.Allowed
				})
			}
		})
	}
}

// TestLendFollowsAnAddress: a name or a virtual address leads to the new master after a failover, while
// connections to the old one, a replica now, stay open. Zones that lend leave these connections too.
func TestLendFollowsAnAddress(t *testing.T) {
	t.Parallel()
	old, next := redistest.Start(t), redistest.Start(t)
	var to atomic.Pointer[string]
	lead := func(s *redistest.Server) { addr := s.Addr(); to.Store(&addr) }
	lead(old)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", *to.Load())
			if err != nil {
				_ = from.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{from, server}, {server, from}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1])
					_ = pair[0].Close()
				}()
			}
		}
	}()
	// An answer that is late would end its connection.
	s := open(t, redisstore.Options{Address: listener.Addr().String(), Timeout: time.Minute})
	s.Silence() // a beat would renew a connection
	rule := lendingRule(t, "z", "token_bucket", algorithms.Limit{Events: 100, Window: 1000 * time.Hour}, 10*time.Second)
	const most = 200 // more than there are connections
	failed := 0
	ask := func() error {
		_, err := decideOne(s, store.Check{Rule: rule, Key: "k", Cost: 20})
		if err != nil && store.Failure(err) != store.FailureOpen {
			if failed++; failed > most {
				t.Fatalf("%d requests have failed: %v", failed, err)
			}
		}
		return err
	}
	s.Borrow(t, store.Check{Rule: rule, Key: "k", Cost: 1}, 1) // only the script that lends decides
	lead(next)
	if err := old.Admin().ReplicaOf(t.Context(), "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	patient.Until(t, "an answer of the new master", func() bool { return ask() == nil })
	if n := next.Admin().DBSize(t.Context()).Val(); n == 0 {
		t.Error("the new master was not asked")
	}
}

// TestLendReportsOnceWritten: what a process has spent of a loan, and could not report because Redis cannot
// write, is charged when it can again.
func TestLendReportsOnceWritten(t *testing.T) {
	t.Parallel()
	for fault, f := range unwritable {
		if fault == "OOM" {
			continue // a report needs no more memory
		}
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			server, s := limited(t)
			s.Silence()
			rule := lendingRule(t, "z", "fixed_window", algorithms.Limit{Events: 100_000, Window: 240 * time.Hour}, 200*time.Millisecond)
			passed := int64(0)
			ask := func(cost int64) {
				if d, err := decideOne(s, store.Check{Rule: rule, Key: "k", Cost: cost}); err == nil && d.Allowed {
					passed += cost
				}
			}
			patient.Until(t, "a loan that is large", func() bool { ask(1); return s.Stats().Lent["z"] > 20 })
			f.breaks(server)
			for range 100 { // more than what is lent
				ask(1)
				ask(99_999) // which is refused, and could be without writing
			}
			before := calls(t, server)
			patient.Until(t, "reports that fail", func() bool { return calls(t, server) > before+3 })
			f.mends(server)
			patient.Until(t, "the end of the loan", func() bool {
				lent, _, err := s.Lent(t.Context(), rule, "k")
				return err == nil && lent == 0
			})
			if n := usedOf(t, s, rule, "k"); n != passed {
				t.Errorf("%d used, and %d passed", n, passed)
			}
		})
	}
}
