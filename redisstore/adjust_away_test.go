package redisstore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/outbox"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// chargeAll charges n keys of a rule, and returns the adjustments that give the charges back.
func chargeAll(t *testing.T, s *redisstore.Store, rule *store.Rule, n int) (charged []store.Adjustment) {
	t.Helper()
	checks := make([]store.Check, n)
	for i := range checks {
		checks[i] = store.Check{Rule: rule, Key: fmt.Sprint(i), Cost: onceCost, LeaseID: storetest.LeaseID(rule)}
	}
	for i, d := range ask(t, s, checks...) {
		if !d.Allowed {
			t.Fatalf("%+v", d)
		}
		charged = append(charged, store.Adjustment{Check: checks[i], At: d.Booked(), Turn: d.Turn(), Delta: onceDelta(i)})
	}
	return charged
}

// TestAdjustmentsWaitForRedis: refunds and late costs that are due while Redis is away reach it
// when it is back, except for those that were on their way when it stopped answering.
func TestAdjustmentsWaitForRedis(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		leave, comeBack func(*redistest.Server)
		most            uint64 // the largest number that may be in doubt
	}{
		"killed": {(*redistest.Server).Kill, (*redistest.Server).Restart, 0},
		"frozen": {(*redistest.Server).Freeze, (*redistest.Server).Thaw, outbox.BatchSize},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t, redistest.WithPersistence())
			s := open(t, redisstore.Options{Address: server.Addr(), Timeout: timeoutOf(name)})
			w := newOnce(t, s)
			charged := chargeAll(t, s, w.late, 250)
			var slots []store.Adjustment
			for range onceSlots {
				slot, _ := w.charge(store.Check{Rule: w.slots, Cost: 1, LeaseID: storetest.LeaseID(w.slots)})
				slot.Delta = -1
				slots = append(slots, slot)
			}
			c.leave(server)
			for i, late := range charged {
				w.adjust(late, late.Delta)
				if i%100 == 50 {
					s.Flush()
				}
			}
			s.Adjust(slots...)
			s.Flush()
			if n := s.Waiting(); n < len(charged)-int(c.most)+len(slots) {
				t.Errorf("%d adjustments wait of %d", n, len(charged)+len(slots))
			}
			c.comeBack(server)
			w.checkAdjustments(server, mayBeMade)
			if lost := s.Stats().Lost; lost > c.most {
				t.Errorf("%d are in doubt, want at most %d", lost, c.most)
			}
			if held := server.Slots(s.Key(w.slots, "")); held != 0 {
				t.Errorf("%d slots are still held", held)
			}
		})
	}
}

func lends(a algorithms.Algorithm) bool {
	_, ok := a.(algorithms.Leaser)
	return ok
}

// TestAdjustmentsComeTooLate: an adjustment that has waited for longer than its charge counts
// changes no other window, and the others are made.
func TestAdjustmentsComeTooLate(t *testing.T) {
	t.Parallel()
	const short = 300 * time.Millisecond
	server := redistest.Start(t, redistest.WithPersistence())
	s := open(t, redisstore.Options{Address: server.Addr()})
	var all, gone []store.Adjustment
	for _, name := range algorithms.Names() {
		if a, _ := algorithms.Get(name); !lends(a) {
			gone = append(gone, chargeAll(t, s, storetest.Rule(t, "short-"+name, name, storetest.Limit(name, 100, short)), 2)...)
		}
	}
	all = append(all, gone...)
	daily := storetest.Rule(t, "daily", "fixed_window", algorithms.Limit{Events: 100, Calendar: algorithms.Month})
	w := newOnce(t, s)
	for _, rule := range []*store.Rule{w.late, daily} {
		all = append(all, chargeAll(t, s, rule, 2)...)
	}
	dump := func(c store.Adjustment) string {
		return server.Admin().Dump(context.Background(), s.Key(c.Rule, c.Key)).Val()
	}
	before := make(map[string]string)
	for _, c := range gone {
		before[s.Key(c.Rule, c.Key)] = dump(c)
	}
	server.Kill()
	s.Adjust(all...)
	s.Flush()
	time.Sleep(3 * short) // because sliding_window_counter counts for two windows
	server.Restart()
	awaitAdjustments(t, s)
	for _, c := range gone {
		if now := dump(c); now != "" && now != before[s.Key(c.Rule, c.Key)] { // the key may have expired
			t.Errorf("%s was adjusted by %d when its window was over", c.Rule.Zone(), c.Delta)
		}
	}
	for _, c := range all[len(gone):] {
		key := s.Key(c.Rule, c.Key)
		if got := charges(t, server, []onceAttempt{{keys: []string{key}}})[key]; got != int(onceCost+c.Delta) {
			t.Errorf("%s was adjusted by %d: Redis counts %d", c.Rule.Zone(), c.Delta, got)
		}
	}
	if lost := s.Stats().Lost; lost != 0 {
		t.Errorf("%d were in doubt", lost)
	}
}

// timeoutOf returns the timeout of decisions in an outage. That Redis is frozen shows only by timeouts.
func timeoutOf(outage string) time.Duration {
	if outage == "frozen" {
		return time.Second
	}
	return 10 * time.Second
}

// TestAdjustmentsOutliveTheStore: a store that is closed because its config was replaced goes on
// in the background until Redis is back and has received everything that waits. Then it closes
// its connections.
func TestAdjustmentsOutliveTheStore(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]struct{ begin, end func(*redistest.Server) }{
		"killed": {(*redistest.Server).Kill, (*redistest.Server).Restart},
		"frozen": {(*redistest.Server).Freeze, (*redistest.Server).Thaw},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t, redistest.WithPersistence())
			s := open(t, redisstore.Options{Address: server.Addr(), Timeout: timeoutOf(name), Ends: func() bool { return false }})
			w := newOnce(t, s)
			charged := chargeAll(t, s, w.late, 250)
			outage.begin(server)
			for s.Breaker() == store.BreakerClosed {
				if attempt(s, w.hot) == nil {
					t.Fatal("answered, but Redis is away")
				}
			}
			for _, late := range charged {
				w.adjust(late, late.Delta)
			}
			closed(t, s)
			if n := s.Waiting(); n != len(charged) {
				t.Errorf("%d wait, want %d", n, len(charged))
			}
			outage.end(server)
			patient.Until(t, "what waits to be sent", func() bool { return s.Waiting() == 0 })
			w.checkAdjustments(server, mayBeMade)
			if lost := s.Stats().Lost; lost != 0 {
				t.Errorf("%d were lost", lost)
			}
			patient.Until(t, "the connections to be closed", func() bool {
				clients, err := server.Admin().ClientList(context.Background()).Result()
				return err == nil && !strings.Contains(clients, server.Addr())
			})
		})
	}
}

// TestCloseSendsWhatWaits: a store that is closed sends its adjustments even if no request has
// noticed yet that Redis is back. If Redis does not come back, the log says how much was lost.
func TestCloseSendsWhatWaits(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.WithPersistence())
	core, logs := observer.New(zap.WarnLevel)
	for _, back := range []bool{true, false} {
		s := open(t, redisstore.Options{Address: server.Addr(), Logger: func() *zap.Logger { return zap.New(core) }})
		w := newOnce(t, s)
		charged := chargeAll(t, s, w.late, 10)
		server.Kill()
		for s.Breaker() != store.BreakerOpen {
			if attempt(s, w.hot) == nil {
				t.Fatal("answered, but Redis is dead")
			}
		}
		for _, late := range charged {
			w.adjust(late, late.Delta)
		}
		if back {
			server.Restart()
		}
		closed(t, s)
		if !back {
			server.Restart()
			if lost := s.Stats().Lost; lost != 10 {
				t.Errorf("%d were lost, want 10", lost)
			}
			continue
		}
		for key, delta := range w.adjusted {
			if got := charges(t, server, []onceAttempt{{keys: []string{key}}})[key]; got != int(onceCost+delta) {
				t.Errorf("%s was adjusted by %d: Redis counts %d", key, delta, got)
			}
		}
		if err := server.Admin().FlushAll(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	said := logs.All()
	if len(said) != 1 || said[0].ContextMap()["count"] != uint64(10) {
		t.Errorf("the log says %v", said)
	}
}
