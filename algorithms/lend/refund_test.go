package lend

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// TestRefundOfCharge: what the store has charged comes back by itself, so the borrower does not take
// it back from what it has spent since. Otherwise more than the burst would pass at once.
func TestRefundOfCharge(t *testing.T) {
	t.Parallel()
	var a algorithms.TokenBucket
	p, err := a.Prepare(algorithms.Limit{Events: 10, Window: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	key := &Key{Account: &Counter{Algorithm: a, Params: p}}
	b := NewBorrower(1, 10*time.Second, 10*time.Second)
	at := func(d time.Duration) (Moment, int64) { return Moment{d, d}, simEpoch + d.Microseconds() }
	ask := func(d time.Duration, a Ask) Answer {
		_, now := at(d)
		return Decide(now, []*Key{key}, []Ask{a})[0]
	}
	// A request comes before the first ask, and is charged by the store, as is that with the ask.
	before := ask(time.Second, Ask{Cost: 1})
	began, _ := at(time.Second + time.Millisecond)
	b.Want(began, 4)
	first := ask(began.Mono, b.Begin(began, 1))
	b.End(began, b.ask.Number, first, 0)
	if !before.Allowed || !first.Allowed || first.Held != 4 {
		t.Fatalf("%+v, %+v", before, first)
	}
	// The bucket is full again. All of it is taken at once.
	now, _ := at(4 * time.Second)
	passed := 0
	for range 12 {
		if b.Next(now, 1, 0) == Reserved {
			b.Spend(now, 1)
			passed++
		}
		if ask(now.Mono, Ask{Cost: 1}).Allowed {
			passed++
		}
	}
	for _, charged := range []Answer{before, first} {
		if b.Refund(now, charged.At, 1) && b.Next(now, 1, 0) == Reserved {
			b.Spend(now, 1)
			passed++
		}
	}
	if passed != 10 {
		t.Errorf("%d passed at once, want the burst of 10", passed)
	}
}

// TestRefundAfterSlowAnswer: after a slow answer, the borrower's idea of the store's time is behind. What was
// charged or reported before is not taken back from what is spent later all the same.
func TestRefundAfterSlowAnswer(t *testing.T) {
	t.Parallel()
	const slow = 300 * time.Millisecond
	at := func(d time.Duration) Moment { return Moment{d, d} }
	answer := func(at time.Duration) Answer {
		d := algorithms.Decision{Allowed: true, Quota: 100, Remaining: 50, At: simEpoch + at.Microseconds()}
		return Answer{Decision: d, Held: 20, Lease: time.Minute.Microseconds()}
	}
	now := time.Second
	b := NewBorrower(1, 10*time.Second, 10*time.Second)
	spend := func() (told int64) {
		if b.Next(at(now), 1, 0) != Reserved {
			t.Fatal("nothing is held")
		}
		told = b.Allowed(at(now)).At
		b.Spend(at(now), 1)
		return told
	}
	ask := func(took time.Duration) (during int64) {
		a := b.Renew(at(now))
		decided := answer(now)
		if now += took; took > 0 {
			during = spend()
		}
		b.End(at(now), a.Number, decided, 0)
		return during
	}
	ask(0)
	reported := ask(slow)
	alone := answer(now).At
	b.ChargedAlone(alone, 0)
	now += time.Millisecond
	ask(0)
	now += slow + time.Millisecond
	spend()
	if b.Refund(at(now), reported, 1) {
		t.Error("what was reported was taken back")
	}
	if b.Refund(at(now), alone, 1) {
		t.Error("what the store has charged was taken back")
	}
}

// TestNoRoomForLoan: who borrows when there are too many loans is charged, and told so by an answer
// without a loan.
func TestNoRoomForLoan(t *testing.T) {
	t.Parallel()
	var a algorithms.FixedWindow
	p, err := a.Prepare(algorithms.Limit{Events: 1000, Window: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	key := &Key{Account: &Counter{Algorithm: a, Params: p}}
	for i := range MaxLoans {
		ask := Ask{Borrower: uint64(i + 1), Number: 1, Cost: 1, Lease: 1e6, Borrows: true}
		if got := Decide(simEpoch, []*Key{key}, []Ask{ask})[0]; got.Held != 1 {
			t.Fatalf("borrower %d: %+v", i, got)
		}
	}
	late := Ask{Borrower: 1000, Number: 1, Cost: 2, Live: 3, Lease: 1e6, Borrows: true}
	if got := Decide(simEpoch, []*Key{key}, []Ask{late})[0]; !got.Allowed || got.Held != 0 || got.Remaining != 1000-MaxLoans-5 {
		t.Errorf("%+v", got)
	}
	// A borrower that asks a second time with the same number is refused, too.
	again := Ask{Borrower: 1, Number: 1, Cost: 10, Lease: 1e6, Borrows: true}
	if got := Decide(simEpoch, []*Key{key}, []Ask{again})[0]; !got.Allowed || got.Held != 0 || got.Remaining != 1000-MaxLoans-15 {
		t.Errorf("%+v", got)
	}
	if got := Decide(simEpoch, []*Key{key}, make([]Ask, 1))[0]; got.Remaining != 1000-MaxLoans-15 {
		t.Errorf("%+v", got)
	}
}

// TestReports: what was spent between two asks is reported by the second one, and by no other.
func TestReports(t *testing.T) {
	t.Parallel()
	b := NewBorrower(1, 10*time.Second, 10*time.Second)
	now := Moment{time.Second, time.Second}
	ask := func() {
		now = now.plus(time.Second)
		b.Renew(now)
		d := algorithms.Decision{Allowed: true, Quota: 100, At: simEpoch + now.Mono.Microseconds()}
		b.End(now, b.ask.Number, Answer{Decision: d, Held: 20, Lease: time.Minute.Microseconds()}, 0)
	}
	ask()
	now = now.plus(time.Second)
	at := b.At(now)
	if b.Reports(at) {
		t.Error("no ask is under way")
	}
	now = now.plus(time.Second)
	b.Renew(now)
	if !b.Reports(at) {
		t.Error("the ask does not report what was spent before it")
	}
	b.Fail(b.ask.Number, true)
	now = now.plus(time.Second)
	b.Renew(now)
	if b.Reports(at) {
		t.Error("the next ask reports it, too")
	}
}

// TestUnbegunAsk: what an ask told that the store never began can be taken back, unless an ask before it has told it too.
func TestUnbegunAsk(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{false, true} {
		b := NewBorrower(1, 10*time.Second, 10*time.Second)
		now := Moment{time.Second, time.Second}
		d := algorithms.Decision{Allowed: true, Quota: 100, At: simEpoch + now.Mono.Microseconds()}
		b.Renew(now)
		b.End(now, b.ask.Number, Answer{Decision: d, Held: 20, Lease: time.Minute.Microseconds()}, 0)
		now = now.plus(time.Second)
		if !b.Reserve(now, 2, 0) || !b.Spend(now, 2) {
			t.Fatal("nothing is held")
		}
		at := b.At(now)
		if before {
			now = now.plus(time.Second)
			b.Renew(now)
			b.Fail(b.ask.Number, true)
		}
		now = now.plus(time.Second)
		b.Renew(now)
		if b.Refund(now, at, 1) {
			t.Error("an ask is under way that tells it")
		}
		if !b.Fail(b.ask.Number, false) || b.Fail(b.ask.Number, false) {
			t.Error("the ask was under way once")
		}
		if got := b.Refund(now, at, 1); got == before {
			t.Errorf("told before: %v, taken back: %v", before, got)
		}
		b.ChargedAlone(b.At(now), 50)
		if b.Refund(now, at, 1) {
			t.Error("the store may have charged it since")
		}
	}
}

// TestRefundAtTheInstantOfAnAnswer: what is spent in the microsecond in which the store has charged another request can be taken back.
func TestRefundAtTheInstantOfAnAnswer(t *testing.T) {
	t.Parallel()
	b := NewBorrower(1, 10*time.Second, 10*time.Second)
	now := Moment{time.Second, time.Second}
	ask := func() {
		at := simEpoch + now.Mono.Microseconds()
		d := algorithms.Decision{Allowed: true, Quota: 100, At: at}
		b.End(now, b.Begin(now, 1).Number, Answer{Decision: d, Held: 20, Lease: time.Minute.Microseconds()}, 0)
		b.ChargedAlone(at, 0)
	}
	spend := func() int64 {
		if b.Next(now, 1, 0) != Reserved || !b.Spend(now, 1) {
			t.Fatal("nothing is spent")
		}
		return b.Allowed(now).At
	}
	ask()
	if charged := simEpoch + now.Mono.Microseconds(); b.Refund(now, charged, 1) {
		t.Error("what the store has charged is taken back from what was spent")
	}
	if !b.Refund(now, spend(), 1) {
		t.Error("what was spent at the instant of an answer is not taken back")
	}
	at := spend()
	b.Renew(now)
	if b.Refund(now, at, 1) {
		t.Error("what an ask tells is taken back")
	}
}
