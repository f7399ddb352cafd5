package link_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// away is the fate of a call that finds no Redis, and deaf that of one that nobody answers.
var (
	away = fate{err: node.Unsent(errors.New("connection refused"))}
	deaf = fate{err: context.DeadlineExceeded, took: time.Hour}
)

// running makes a link by the clock of the bubble, which runs from now on.
func running(t *testing.T, configure ...func(*link.Config)) *bench {
	b := newBench(t, append(configure, func(c *link.Config) { c.Clock = time.Now })...)
	go b.Run()
	return b
}

// pass lets time pass, and all that it brings happen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// end ends the link, and returns how long that took.
func (b *bench) end(t *testing.T) time.Duration {
	t.Helper()
	begun := time.Now()
	close(b.done)
	if err := b.Link.Close(); err != nil {
		t.Error(err)
	}
	return time.Since(begun)
}

// times are when the calls of a way came that have an operation of a kind.
func (b *bench) times(way string, kind protocol.Kind, since time.Time) (all []time.Duration) {
	for _, c := range b.got(way) {
		if slices.ContainsFunc(c.ops, func(op protocol.Op) bool { return op.Kind == kind }) {
			all = append(all, c.at.Sub(since))
		}
	}
	return all
}

// renewed returns the leases that were to be renewed.
func (b *bench) renewed() (leases []string) {
	for _, c := range b.got("DoAll") {
		for _, op := range c.ops {
			if op.Kind == protocol.Renew {
				leases = append(leases, op.LeaseID)
			}
		}
	}
	slices.Sort(leases)
	return slices.Compact(leases)
}

// slotOf is a check of one of two slots with a lease of three seconds.
func slotOf(t *testing.T, key string) store.Check {
	rule := storetest.Rule(t, "slots", "concurrency", storetest.Limit("concurrency", 2, 3*time.Second))
	return store.Check{Rule: rule, Key: key, Cost: 1, LeaseID: storetest.LeaseID(rule)}
}

// TestRenewal: what is held is renewed each third of its lease, until it is given back. Nothing else is renewed: what was
// refused, looked at, taken by an exempt key, or got for a request that did not pass.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c, begun := running(t), slotOf(t, "client"), time.Now()
		full, peek, exempt, group, alone := slotOf(t, "full"), slotOf(t, "peek"), slotOf(t, "exempt"), slotOf(t, "group"), slotOf(t, "alone")
		full.Cost, peek.Peek, alone.Independent = 3, true, true
		exempt.KeyRules = &store.KeyRules{Overrides: true}
		if err := b.memory.SetRule(t.Context(), exempt.Rule, store.Selector{Key: exempt.Key}, store.Override{Kind: store.KindExempt}); err != nil {
			t.Fatal(err)
		}
		for _, checks := range [][]store.Check{{c, peek}, {exempt}, {full, group, alone}} {
			if err := b.Take(t.Context(), checks, make([]algorithms.Decision, len(checks))); err != nil {
				t.Fatal(err)
			}
		}
		pass(1900 * time.Millisecond)
		if got := b.renewed(); !slices.Equal(got, []string{c.LeaseID, alone.LeaseID}) {
			t.Errorf("renewed %q, want %q and %q", got, c.LeaseID, alone.LeaseID)
		}
		b.Link.Adjust(store.Adjustment{Check: alone, Delta: -1})
		b.stay(&fate{err: io.EOF})
		pass(time.Second)
		b.stay(nil)
		pass(time.Second)
		b.Link.Adjust(store.Adjustment{Check: c, Delta: -1})
		pass(time.Minute)
		if got := b.times("DoAll", protocol.Renew, begun); !slices.Equal(got, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}) {
			t.Errorf("renewed at %v", got)
		}
		if b.left(t, c) != 2 || len(b.Leases.All()) > 0 {
			t.Errorf("%d are left, %d held", b.left(t, c), len(b.Leases.All()))
		}
		b.end(t)
	})
}

// TestClose: a link that is closed gives back what is held and sends what waits, for a second at most. If the process
// lives on, it does so in the background for an hour at most, and the connections stay until then. What is given up
// then is counted and told, but leases, which end by themselves.
func TestClose(t *testing.T) {
	const linger = time.Hour
	for name, c := range map[string]struct {
		lives  bool
		meets  *fate
		until  time.Duration // 0: forever
		takes  time.Duration // to close
		closed time.Duration // when the connections are
		lost   uint64
	}{
		"Redis answers":                  {},
		"and the process lives":          {lives: true},
		"it is back soon":                {meets: &away, until: 320 * time.Millisecond, takes: 350 * time.Millisecond, closed: 350 * time.Millisecond},
		"it stays away":                  {meets: &away, takes: link.CloseTimeout, closed: link.CloseTimeout, lost: 1},
		"it hangs":                       {meets: &deaf, takes: link.CloseTimeout, closed: link.CloseTimeout, lost: 1},
		"it is back later":               {lives: true, meets: &away, until: 10*time.Minute - time.Millisecond, closed: 10*time.Minute + store.RenewInterval},
		"it stays away from who lives":   {lives: true, meets: &away, closed: linger, lost: 1},
		"it loses replies to who lives":  {lives: true, meets: &fate{err: io.EOF, runs: true}, closed: linger, lost: 1},
		"it is back as soon as it hangs": {meets: &deaf, until: time.Millisecond, takes: link.CloseTimeout, closed: link.CloseTimeout, lost: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := running(t, func(config *link.Config) { config.Ends = func() bool { return !c.lives } })
				rule := storetest.Rule(t, "zone", "fixed_window", algorithms.Limit{Events: 10, Window: 24 * time.Hour})
				slot, charge := slotOf(t, "client"), store.Check{Rule: rule, Key: "client", Cost: 1}
				decisions := make([]algorithms.Decision, 2)
				if err := b.Take(t.Context(), []store.Check{slot, charge}, decisions); err != nil {
					t.Fatal(err)
				}
				b.will(away)
				b.Link.Adjust(store.GiveBack(&charge, &decisions[1]))
				synctest.Wait() // it was tried
				b.stay(c.meets)
				begun := time.Now()
				if c.until > 0 {
					time.AfterFunc(c.until, func() { b.stay(nil) })
				}
				if took := b.end(t); took != c.takes {
					t.Errorf("closed after %v, want %v", took, c.takes)
				}
				if after := (<-b.closed).Sub(begun); after != c.closed {
					t.Errorf("the connections are closed after %v, want %v", after, c.closed)
				}
				back := c.meets == nil || c.until > 0 && c.lost == 0 || c.meets.runs
				if slots, events := b.left(t, slot), b.left(t, charge); (slots == 2) != back || (events == 10) != back {
					t.Errorf("%d slots and %d events are left", slots, events)
				}
				var told, want []uint64
				if c.lost > 0 {
					want = append(want, c.lost)
				}
				for _, line := range b.logs.All() {
					told = append(told, line.ContextMap()["count"].(uint64))
				}
				if n, _ := b.Outbox.Lost(); n != c.lost || !slices.Equal(told, want) || b.Outbox.Len() > 0 {
					t.Errorf("%d lost, %v told, %d wait", n, told, b.Outbox.Len())
				}
			})
		})
	}
}

// TestWarnsOnceAMinute: what is lost is told once a minute, with the number since, and what is left when the link is
// closed. Damaged states are told in the same way, whatever finds them.
func TestWarnsOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := running(t), checkOf(t, "fixed_window")
		lose := func(n int) {
			for range n {
				b.will(fate{err: io.EOF})
				b.Adjust(store.Adjustment{Check: c, Delta: -1})
			}
			pass(time.Second)
		}
		lose(1)
		lose(2)
		lose(3)
		pass(time.Minute)
		lose(4)
		b.end(t)
		var told []uint64
		for _, line := range b.logs.FilterMessageSnippet("were given up").All() {
			told = append(told, line.ContextMap()["count"].(uint64))
		}
		if !slices.Equal(told, []uint64{1, 5, 4}) {
			t.Errorf("told of %v", told)
		}

		b.damaged = true
		for range 3 {
			_, _ = b.take(t, c)
			pass(30 * time.Second)
		}
		if n := b.logs.FilterMessageSnippet("is damaged").Len(); n != 2 {
			t.Errorf("damage is told %d times in a minute and a half", n)
		}
	})
}
