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
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
	"github.com/seed-161337e5/caddyratelimit/store"
)

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
		b.known.add(c.checks...)
		err := b.TakeSlot(t.Context(), c.checks, make([]algorithms.Decision, len(c.checks)), c.amid)
		if got := b.got("Do"); err != nil || len(got) != 1 || got[0].alone != c.want {
			t.Errorf("%d checks, amid %v: %v, %+v", len(c.checks), c.amid, err, got)
		}
	}
}

// TestFar: a server is far if there is no time for two round trips and the work.
func TestFar(t *testing.T) {
	b, c := newBench(t), checkOf(t, "fixed_window")
	for distance, want := range map[time.Duration]bool{0: false, timeout / 3: false, timeout/3 + time.Millisecond: true, timeout: true} {
		if b.distance = distance; b.Far(t.Context(), &c) != want {
			t.Errorf("a round trip of %v: far: %v", distance, !want)
		}
	}
	if b.away = io.EOF; b.Far(t.Context(), &c) {
		t.Error("no server is far")
	}
}

// asksOf are asks about so many keys.
func asksOf(t *testing.T, n int) (asks []*link.Ask) {
	for i := range n {
		c := checkOf(t, "fixed_window")
		c.Key = fmt.Sprint(i)
		asks = append(asks, &link.Ask{Check: &c})
	}
	return asks
}

// TestAskEach: asks that no request waits for share calls, as many as may. An error is that of the asks of its call.
func TestAskEach(t *testing.T) {
	for perCall, calls := range map[int]int{link.MaxPerCall: 3, 1: 70} {
		b := newBench(t, func(c *link.Config) { c.PerCall = perCall })
		asks := asksOf(t, 70)
		b.will(fate{runs: true}, fate{err: io.EOF})
		b.AskEach(t.Context(), asks)
		var keys []string
		for _, c := range b.got("LendIfReady") {
			keys = append(keys, c.keys...)
		}
		if n := len(b.got("LendIfReady")); n != calls || len(keys) != 70 || b.failures.Load() != 1 {
			t.Errorf("%d a call: %d calls with %d keys, %d failures", perCall, n, len(keys), b.failures.Load())
		}
		for i, a := range asks {
			if failed := i/perCall == 1; failed != (a.Err != nil) || failed != (a.Quota == 0) || keys[i] != prefix.State(a.Rule.ID(), a.Key) {
				t.Errorf("%d a call: ask %d has %v and %+v, and the key %q", perCall, i, a.Err, a.LendAnswer, keys[i])
			}
		}
	}
}

// TestAskTogether: asks of a request are in one call, which in a Cluster is one of its own.
func TestAskTogether(t *testing.T) {
	for perCall, way := range map[int]string{link.MaxPerCall: "Do", 1: "LendIfReady"} {
		b := newBench(t, func(c *link.Config) { c.PerCall = perCall })
		asks := asksOf(t, 3)
		b.will(fate{err: io.EOF})
		if err := b.AskTogether(t.Context(), asks); !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", way, err)
		}
		if err := b.AskTogether(t.Context(), asks); err != nil || slices.ContainsFunc(asks, func(a *link.Ask) bool { return a.Quota != 1 }) {
			t.Errorf("%s: %v", way, err)
		}
		for _, c := range b.got(way) {
			if len(c.keys) != 3 {
				t.Errorf("%s: a call has %q", way, c.keys)
			}
		}
		if n := len(b.got(way)); n != 2 || n != len(b.calls) {
			t.Errorf("%s: %d calls of %d", way, n, len(b.calls))
		}
	}
}
