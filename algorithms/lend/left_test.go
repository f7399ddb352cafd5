package lend

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// TestLeft: a decision says what is left of the limit as of the last exchange, less what the borrower has spent
// since.
func TestLeft(t *testing.T) {
	t.Parallel()
	var a algorithms.FixedWindow
	p, err := a.Prepare(algorithms.Limit{Events: 100, Window: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	key := &Key{Account: &Counter{Algorithm: a, Params: p}}
	now := Moment{time.Second, time.Second}
	b := NewBorrower(1, 10*time.Second, 10*time.Second)
	ask := func(a Ask) { b.End(now, a.Number, Decide(simEpoch, []*Key{key}, []Ask{a})[0], 0) }
	tells := func(when string, left int64) {
		t.Helper()
		if b.Next(now, 1, 0) != Reserved {
			t.Fatalf("%s: nothing is held", when)
		}
		d := b.Allowed(now)
		if b.Spend(now, 1); d.Remaining != left || d.NextAfter <= 0 {
			t.Errorf("%s: %d of %d remain, more after %v, want %d", when, d.Remaining, d.Quota, d.NextAfter, left)
		}
	}
	for range 10 {
		b.Want(now, 1)
	}
	ask(b.Begin(now, 1)) // which lends 20
	tells("after an ask", 98)
	tells("later", 97)
	Decide(simEpoch, []*Key{key}, []Ask{{Borrower: 2, Number: 1, Want: 20, Lease: MaxLease, Cost: 10}})
	tells("before others are known", 96)
	ask(b.Renew(now))
	tells("when others are known", 68)
	b.ChargedAlone(simEpoch, 50)
	tells("after a request that asked for itself", 65)
	if paid := b.Late(now, 39); paid != 15 {
		t.Fatalf("%d paid, want what was held", paid)
	}
	b.Refund(now, b.At(now), 2)
	tells("after a late cost that the store pays a part of", 27)
	b.Owes()
	if d := b.Allowed(now); d.Remaining != 0 {
		t.Errorf("%d are left, although nothing is free", d.Remaining)
	}
	if d := b.Refused(now, 1); d.Remaining != 0 {
		t.Errorf("%d are left after a refusal", d.Remaining)
	}
}
