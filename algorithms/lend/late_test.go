//go:build deep

package lend

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
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
		answer := func(ask Ask) { b.End(at(), ask.Number, Decide(simEpoch, []*Key{key}, []Ask{ask})[0], 0) }
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
			b.End(at(), ask.Number, decided, ask.Cost)
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

// lateOrder is a borrower in one order of what may happen around a late cost that uses up the limit.
type lateOrder struct {
	Borrower
	now      time.Duration
	before   *lateOrder
	what     string   // has happened since then
	requests []Moment // that have reserved something: when they have looked at the clock
	spends   []int64  // when others have spent something
	came     int
	decided  bool  // the ask that is under way
	held     int64 // by the answer to it
	allowed  bool
	late     lateStage
	watcher  *watcher
}

// lateEvents says what the steps are to a borrower.
var lateEvents = map[string]string{
	"a request": "request", "spent": "request", "spent after a look at the clock": "request", "cancelled": "request", "refunded": "request",
	"asked for a request": "begin", "borrowed for a request": "begin", "renewed": "begin", "returned": "begin",
	"decided": "request", "given up": "fail", "not begun": "fail", "answered": "end", "answered and reserved": "end",
	"paid": "request", "charged": "request", "known": "owes",
}

// lateStage is how far a late cost has come.
type lateStage uint8

const (
	lateUnpaid  lateStage = iota
	latePaid              // by what was held, in part
	lateCharged           // the store has charged the rest
	lateKnown             // to the borrower
)

// step returns the same order, in which one more thing has happened.
func (o *lateOrder) step(what string) *lateOrder {
	next := *o
	next.now += time.Second
	next.before, next.what = o, what
	next.requests, next.spends = slices.Clone(o.requests), slices.Clone(o.spends)
	return &next
}

// story is all that has happened.
func (o *lateOrder) story() string {
	if o.before == nil {
		return ""
	}
	return o.before.story() + ", " + o.what
}

func (o *lateOrder) moment() Moment { return Moment{o.now, o.now} }

// next returns all that may happen next.
func (o *lateOrder) next(t *testing.T) (all []*lateOrder) {
	add := func(what string, do func(n *lateOrder)) {
		n := o.step(what)
		do(n)
		o.watcher.watch(t, lateEvents[what], n.story(), &o.Borrower, &n.Borrower, n.moment(), n.moment())
		all = append(all, n)
	}
	if o.came < 2 {
		add("a request", func(n *lateOrder) {
			n.came++
			switch {
			case !n.Reserve(n.moment(), 1, 0):
			case n.late == lateKnown:
				t.Fatalf("a request passes after the late cost%s", n.story())
			default:
				n.requests = append(n.requests, n.moment())
			}
		})
	}
	for i := range o.requests {
		add("spent", func(n *lateOrder) { n.spend(i, n.requests[i]) })
		add("spent after a look at the clock", func(n *lateOrder) { n.spend(i, n.moment()) })
		add("cancelled", func(n *lateOrder) {
			n.Cancel(1)
			n.requests = slices.Delete(n.requests, i, i+1)
		})
	}
	for i := range o.spends {
		add("refunded", func(n *lateOrder) {
			n.Refund(n.moment(), n.spends[i], 1)
			n.spends = slices.Delete(n.spends, i, i+1)
		})
	}
	switch {
	case !o.Asks() && o.ask.Number < 3:
		add("asked for a request", func(n *lateOrder) { n.Begin(n.moment(), 1) })
		add("borrowed for a request", func(n *lateOrder) { n.Borrow(n.moment(), 1) })
		add("renewed", func(n *lateOrder) { n.Renew(n.moment()) })
		add("returned", func(n *lateOrder) { n.Return(n.moment()) })
	case o.Asks() && !o.decided:
		add("decided", func(n *lateOrder) {
			n.decided, n.held, n.allowed = true, n.ask.Live, n.ask.Cost == 0
			if n.late < lateCharged {
				n.held, n.allowed = 5, true // at least what is live and the request's cost
			}
		})
		add("given up", func(n *lateOrder) { n.Fail(n.ask.Number, true) })
		add("not begun", func(n *lateOrder) { n.Fail(n.ask.Number, false) })
	case o.Asks():
		add("answered", func(n *lateOrder) { n.answers(n.held, n.allowed, 0) })
		if o.ask.Borrows && o.allowed {
			add("answered and reserved", func(n *lateOrder) {
				n.answers(n.held, n.allowed, 1)
				if !n.Reserve(n.moment(), 1, 0) {
					t.Fatalf("the request does not get what was lent for it%s", n.story())
				}
				n.requests = append(n.requests, n.moment())
			})
		}
	}
	switch o.late {
	case lateUnpaid:
		add("paid", func(n *lateOrder) {
			n.late = latePaid
			n.Late(n.moment(), 100)
		})
	case latePaid:
		add("charged", func(n *lateOrder) { n.late = lateCharged })
	case lateCharged:
		add("known", func(n *lateOrder) {
			n.late = lateKnown
			n.Owes()
		})
	case lateKnown:
	}
	return all
}

// spend spends what a request has reserved, by the time that it knows.
func (o *lateOrder) spend(request int, now Moment) {
	if o.Spend(now, 1) {
		o.spends = append(o.spends, o.At(now))
	}
	o.requests = slices.Delete(o.requests, request, request+1)
}

// answers has the store answer the ask.
func (o *lateOrder) answers(held int64, allowed bool, reserve int64) {
	d := algorithms.Decision{Allowed: allowed, Quota: 100, At: simEpoch + o.now.Microseconds()}
	o.End(o.moment(), o.ask.Number, Answer{Decision: d, Held: held, Lease: time.Minute.Microseconds()}, reserve)
	o.decided = false
}

// recovers checks that what the store lends later, when something is free again, can be spent.
func (o *lateOrder) recovers(t *testing.T) {
	n := o.step("free again")
	n.Begin(n.moment(), 1)
	before := n.Borrower
	n.answers(7, true, 0)
	o.watcher.watch(t, "end", n.story(), &before, &n.Borrower, n.moment(), n.moment())
	n.Reserve(n.moment(), 1, 0)
	n.Cancel(1)
	if got := n.Live(n.moment()); got != 7 {
		t.Fatalf("holds %d of 7 that were lent%s", got, n.story())
	}
}

// TestLateCostOrders: once a borrower knows of a late cost that has used up the limit, nothing can be reserved any
// more, in whatever order requests have reserved, spent and given up before and after that, and asks were made and
// answered. The store lends nothing more, but may have done so before.
func TestLateCostOrders(t *testing.T) {
	t.Parallel()
	t.Logf("%d orders", exploreLateOrders(t, nil, deep.Steps(7, 9)))
}

// exploreLateOrders goes through all orders of so many steps.
func exploreLateOrders(t *testing.T, w *watcher, depth int) (orders int) {
	var visit func(o *lateOrder, depth int)
	visit = func(o *lateOrder, depth int) {
		orders++
		if o.late == lateKnown && !o.Asks() && len(o.requests) == 0 {
			o.recovers(t)
		}
		if depth == 0 {
			return
		}
		for _, n := range o.next(t) {
			visit(n, depth-1)
		}
	}
	first := &lateOrder{Borrower: *NewBorrower(1, time.Minute, time.Minute), now: time.Second, watcher: w}
	first.Begin(first.moment(), 1)
	first.answers(5, true, 0)
	first.Reserve(first.moment(), 1, 0)
	first.requests, first.came = []Moment{first.moment()}, 1
	visit(first, depth)
	known := first.step("all of the late cost")
	known.late = lateKnown
	known.Late(known.moment(), 100)
	known.Owes()
	visit(known, depth)
	return orders
}
