package link_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// failures are the errors of calls.
var failures = map[string]struct {
	err    error
	unsure bool // the call may have been carried out
	quiet  bool // nobody looks for another server
}{
	"lost":             {err: io.EOF, unsure: true},
	"no answer":        {err: context.DeadlineExceeded, unsure: true},
	"nonsense":         {err: errors.New("redis answered an invalid reply"), unsure: true},
	"script stopped":   {err: said("WRONGTYPE Operation against a key script: 1a2b, on @user_script:7."), unsure: true},
	"right of a key":   {err: said("ERR The user executing the script can't access a key"), unsure: true},
	"unknown":          {err: said("ERR something new"), unsure: true},
	"not sent":         {err: node.Unsent(errors.New("connection refused"))},
	"breaker":          {err: fmt.Errorf("%w: connection refused", store.ErrUnavailable)},
	"closed":           {err: store.ErrClosed},
	"LOADING":          {err: said("LOADING Redis is loading the dataset in memory")},
	"MASTERDOWN":       {err: said("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.")},
	"BUSY":             {err: said("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")},
	"NOPERM":           {err: said("NOPERM this user has no permissions to run the 'evalsha' command")},
	"NOAUTH":           {err: said("NOAUTH Authentication required.")},
	"NOSCRIPT":         {err: said("NOSCRIPT No matching script.")},
	"clients":          {err: said("ERR max number of clients reached")},
	"CLUSTERDOWN":      {err: said("CLUSTERDOWN The cluster is down")},
	"MOVED":            {err: said("MOVED 1 127.0.0.1:7001")},
	"READONLY":         {err: protocol.Unwritten("READONLY You can't write against a read only replica.")},
	"MISCONF":          {err: protocol.Unwritten("MISCONF Redis is configured to save RDB snapshots")},
	"READONLY, script": {err: said("ERR Error running script (call to f_1a2b): @user_script:7: -READONLY You can't write against a read only replica.")},
	"OOM":              {err: protocol.Unwritten("OOM command not allowed when used memory > 'maxmemory'."), quiet: true},
	"busy":             {err: node.Unsent(store.ErrBusy), quiet: true},
	"late":             {err: node.ErrLate, quiet: true},
}

// checkOf is a check of ten events or slots.
func checkOf(t testing.TB, algorithm string) store.Check {
	rule := storetest.Rule(t, "zone", algorithm, storetest.Limit(algorithm, 10, time.Hour))
	return store.Check{Rule: rule, Key: "client", Cost: 1, LeaseID: storetest.LeaseID(rule)}
}

// TestTakeFails: the caller learns why a call has failed. A slot that it may have taken is given back, also if it
// has not, and nothing is renewed. A charge that it may have made stays. Another server is looked for, unless that would
// not help.
func TestTakeFails(t *testing.T) {
	for name, f := range failures {
		for _, runs := range slices.Compact([]bool{false, f.unsure}) {
			b, slot, charge := newBench(t), checkOf(t, "concurrency"), checkOf(t, "fixed_window")
			b.will(fate{err: f.err, runs: runs})
			decisions := []algorithms.Decision{{Quota: 77}, {Quota: 77}}
			err := b.Take(t.Context(), []store.Check{slot, charge}, decisions)
			if !errors.Is(err, f.err) || decisions[0].Quota != 77 || len(b.got("Do")) != 1 {
				t.Errorf("%s: %v after %d calls, with the decision %+v", name, err, len(b.got("Do")), decisions[0])
			}
			if reported := b.failures.Load() > 0; reported == f.quiet {
				t.Errorf("%s: reported: %v", name, reported)
			}
			if gives := b.Waiting() > 0; gives != f.unsure || len(b.Leases.All()) > 0 {
				t.Errorf("%s: gives back: %v, holds %d", name, gives, len(b.Leases.All()))
			}
			b.SendWaiting(t.Context())
			charged := int64(0)
			if runs {
				charged = 1
			}
			if slots, events := b.left(t, slot), b.left(t, charge); slots != 10 || events != 10-charged {
				t.Errorf("%s, carried out: %v: %d slots and %d events are left", name, runs, slots, events)
			}
		}
	}
}

// TestAdjustFails: an adjustment whose call has failed is sent again, unless it may have been carried out and twice
// is not the same as once. Then it is given up, and counted.
func TestAdjustFails(t *testing.T) {
	for name, f := range failures {
		for kind, repeatable := range map[string]bool{"concurrency": true, "fixed_window": false, "sliding_window_log": false, "token_bucket": false} {
			for _, runs := range slices.Compact([]bool{false, f.unsure}) {
				b, c := newBench(t), checkOf(t, kind)
				d, err := b.take(t, c)
				if err != nil {
					t.Fatal(err)
				}
				a, told := store.GiveBack(&c, &d), 0
				a.Done = func(changed bool) { told++ }
				b.will(fate{err: f.err, runs: runs})
				b.Adjust(a)
				lost, again := uint64(0), 1
				if f.unsure && !repeatable {
					lost, again = 1, 0
				}
				if n, cause := b.Outbox.Lost(); n != lost || b.Waiting() != again || lost > 0 && cause != f.err || told > 0 {
					t.Errorf("%s, %s: %d lost (%v), %d wait, told %d times", name, kind, n, cause, b.Waiting(), told)
				}
				if b.SendWaiting(t.Context()); len(b.got("DoAll")) != 1 {
					t.Errorf("%s, %s: it is sent again at once", name, kind)
				}
				b.Outbox.Retry()
				b.SendWaiting(t.Context())
				if left := b.left(t, c); (left == 10) != (again > 0 || runs) || told != again || b.Waiting() > 0 {
					t.Errorf("%s, %s, carried out: %v: %d are left, told %d times, %d wait", name, kind, runs, left, told, b.Waiting())
				}
			}
		}
	}
}

// TestNoServer: without a server that may be asked, a request costs no call, and what is adjusted waits.
func TestNoServer(t *testing.T) {
	for name, is := range map[string]func(b *bench) error{
		"none is known": func(b *bench) error {
			b.away = errors.New("no node of the cluster serves slot 7")
			return b.away
		},
		"not ready": func(b *bench) error {
			b.unready = store.ErrUnavailable
			b.stay(&fate{err: b.unready})
			return b.unready
		},
	} {
		b, c := newBench(t), checkOf(t, "fixed_window")
		why := is(b)
		if _, err := b.take(t, c); !errors.Is(err, why) || len(b.got("Do")) > 0 || b.failures.Load() != 1 {
			t.Errorf("%s: %v after %d calls, %d failures", name, err, len(b.got("Do")), b.failures.Load())
		}
		if b.Adjust(store.Adjustment{Check: c, Delta: 1}); b.Waiting() != 1 {
			t.Errorf("%s: %d adjustments wait", name, b.Waiting())
		}
		b.away = nil
		if b.stay(nil); !b.Outbox.Retry() {
			t.Errorf("%s: nothing to send", name)
		}
		if b.SendWaiting(t.Context()); b.left(t, c) != 9 {
			t.Errorf("%s: %d are left after a cost of 1", name, b.left(t, c))
		}
	}
}

// TestServersFail: what one server does not take waits alone. Costs are sent before what is given back.
func TestServersFail(t *testing.T) {
	b := newBench(t)
	far := b.servers.all[1]
	b.spread = true
	far.will(fate{err: node.Unsent(io.EOF)}, fate{err: io.EOF})
	var all []store.Adjustment
	var places [2]int
	for i := range 64 {
		c := checkOf(t, "fixed_window")
		c.Key = fmt.Sprint(i)
		places[b.Link.Slot(&c)%2]++
		all = append(all, store.Adjustment{Check: c, Delta: int64(1 - 2*(i/2%2))})
	}
	b.Adjust(all...)
	lost, _ := b.Outbox.Lost()
	if n := len(b.got("DoAll")) + len(far.got("DoAll")); n != 4 {
		t.Errorf("%d calls", n)
	}
	for _, s := range b.servers.all {
		for i, c := range s.got("DoAll") {
			for _, op := range c.ops {
				if late := op.LeaseID[16] == 0; late != (i == 0) { // the first byte of the Delta
					t.Errorf("call %d has a cost: %v", i, late)
				}
			}
		}
	}
	if lost == 0 || int(lost)+b.Waiting() != places[1] {
		t.Errorf("%d lost and %d wait, of %d at the server that fails", lost, b.Waiting(), places[1])
	}
}

// TestRequestIsNotUsedAgain: a request whose answer may be on its way is not used for another client, so that the
// answer changes nothing that one is told.
func TestRequestIsNotUsedAgain(t *testing.T) {
	b, c := newBench(t), checkOf(t, "fixed_window")
	for range 20 {
		b.will(fate{err: context.DeadlineExceeded})
		if _, err := b.take(t, c); err == nil {
			t.Fatal("no error")
		}
		lost := b.seen[len(b.seen)-1]
		_, err := b.take(t, c)
		if again := b.seen[len(b.seen)-1]; err != nil || again == lost {
			t.Fatalf("%v, used again: %v", err, again == lost)
		}
	}
}

// TestAllAlone: a request says whether an error may fail all checks of a request, because each is decided by itself
// and no other part of the request waits for them.
func TestAllAlone(t *testing.T) {
	alone, together := checkOf(t, "fixed_window"), checkOf(t, "token_bucket")
	alone.Independent = true
	for _, c := range []struct {
		checks []store.Check
		amid   bool
		want   bool
	}{
		{[]store.Check{alone}, false, true},
		{[]store.Check{alone, alone}, false, true},
		{[]store.Check{alone}, true, false},
		{[]store.Check{alone, together}, false, false},
		{[]store.Check{together}, false, false},
	} {
		b := newBench(t)
		err := b.TakeSlot(t.Context(), c.checks, make([]algorithms.Decision, len(c.checks)), c.amid)
		if got := b.got("Do"); err != nil || len(got) != 1 || got[0].alone != c.want {
			t.Errorf("%d checks, amid %v: %v, %+v", len(c.checks), c.amid, err, got)
		}
	}
}
