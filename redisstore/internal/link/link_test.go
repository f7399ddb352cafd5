package link_test

import (
	"context"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
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
		err := b.TakeSlot(t.Context(), c.checks, make([]algorithms.Decision, len(c.checks)), c.amid)
		if got := b.got("Do"); err != nil || len(got) != 1 || got[0].alone != c.want {
			t.Errorf("%d checks, amid %v: %v, %+v", len(c.checks), c.amid, err, got)
		}
	}
}
