package lend

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// TestLateCost: what is held pays for a late cost. When the store has charged one and nothing is free since,
// what was lent before is not spent but given back, also what comes with the answer that is under way. Only
// what requests have reserved is spent.
func TestLateCost(t *testing.T) {
	t.Parallel()
	var a algorithms.FixedWindow
	p, err := a.Prepare(algorithms.Limit{Events: 100, Window: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for _, while := range []string{"nothing", "a renewal", "a request"} {
		counter := &Counter{Algorithm: a, Params: p}
		key := &Key{Account: counter}
		used := func() int64 { return counter.State[1] + key.Book.Held() }
		now := time.Second
		at := func() Moment { return Moment{now, now} }
		b := NewBorrower(1, 10*time.Second, 10*time.Second)
		answer := func(ask Ask) { b.End(at(), ask.Number, Decide(simEpoch, []*Key{key}, []Ask{ask})[0]) }
		take := func() bool { return b.Next(at(), 1, 0) == Reserved && b.Spend(at(), 1) }
		for range 10 {
			b.Want(at(), 2)
		}
		answer(b.Begin(at(), 1))
		if held := b.Live(at()); held != 40 || used() != 41 {
			t.Fatalf("%d held, %d used", held, used())
		}
		if paid := b.Late(at(), 15); paid != 15 || b.Live(at()) != 25 || used() != 41 {
			t.Fatalf("%d paid, %d held, %d used", paid, b.Live(at()), used())
		}
		if b.Next(at(), 1, 0) != Reserved { // by a request that goes on later
			t.Fatal("nothing is held")
		}
		var ask Ask
		var decided Answer
		switch while {
		case "a renewal":
			ask = b.Renew(at())
		case "a request":
			ask = b.Borrow(at(), 30)
		}
		if ask.Number > 0 {
			decided = Decide(simEpoch, []*Key{key}, []Ask{ask})[0]
		}
		paid := b.Late(at(), 1000)
		counter.State = a.Adjust(counter.State, p, simEpoch, simEpoch, 0, 1000-paid)
		b.Owes()
		if ask.Number > 0 {
			b.End(at(), ask.Number, decided)
		}
		if while == "a request" && (b.Next(at(), 30, 0) != Reserved || !b.Spend(at(), 30)) {
			t.Error("what was lent for the request cannot be spent")
		}
		if take() || !b.Spend(at(), 1) || b.Live(at()) != 0 {
			t.Errorf("while %s: not only what was reserved can be spent: %d held", while, b.Live(at()))
		}
		if !b.Refund(at(), b.At(at())+1, 1) || take() || b.Live(at()) != 0 {
			t.Errorf("while %s: what was refunded is not given back: %d held", while, b.Live(at()))
		}
		if !b.Holds(at()) {
			t.Errorf("while %s: nothing would be given back", while)
		}
		now += 20 * time.Second
		if _, giveBack := b.Due(at()); !giveBack {
			t.Errorf("while %s: nothing is given back", while)
		}
		answer(b.Return(at()))
		want := int64(1 + 15 + 1000) // but what was refunded
		if while == "a request" {
			want += 30
		}
		if used() != want || len(key.Book) > 0 || b.Holds(at()) {
			t.Errorf("while %s: %d used, want %d; %+v", while, used(), want, key.Book)
		}
	}
}

// TestLateCostUnspent: what a request has reserved and not spent, when everything else is given up, is not spent by
// others either, whether the store is asked before the late cost or after it. A request that has looked at the clock
// before the last ask does not spend what it has reserved.
func TestLateCostUnspent(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"cancelled", "too old", "asked later and cancelled", "asked later and too old"} {
		b := NewBorrower(1, 10*time.Second, 10*time.Second)
		answer := func(at Moment, held int64) {
			d := algorithms.Decision{Allowed: true, Quota: 100, At: simEpoch + at.Mono.Microseconds()}
			b.End(at, b.number, Answer{Decision: d, Held: held, Lease: time.Minute.Microseconds()})
		}
		first := Moment{time.Second, time.Second}
		second := first.plus(time.Second)
		b.Begin(first, 1)
		answer(first, 20)
		if b.Next(first, 1, 0) != Reserved {
			t.Fatal("nothing is held")
		}
		if strings.HasPrefix(how, "asked later") {
			b.Owes()
			answer(second, b.Return(second).Live)
		} else {
			b.Renew(second)
			b.Owes()
			answer(second, 20)
		}
		if strings.HasSuffix(how, "cancelled") {
			b.Cancel(1)
		} else if b.Spend(first, 1) {
			t.Error("a request has spent a loan that it cannot know")
		}
		if b.Next(second, 1, 0) == Reserved {
			t.Errorf("%s: another request passes", how)
		}
	}
}
