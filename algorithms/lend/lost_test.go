package lend

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// TestLostAnswerIsReturned: a borrower that gives up an ask returns what the store may have lent it by
// that, instead of letting it count as spent. The same holds if its return is lost, and for a loan that comes when its time is over.
func TestLostAnswerIsReturned(t *testing.T) {
	t.Parallel()
	var a algorithms.FixedWindow
	p, err := a.Prepare(algorithms.Limit{Events: 1000, Window: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	const period = 100 * time.Millisecond
	for _, lost := range []string{"ask", "return", "time"} {
		key := &Key{Account: &Counter{Algorithm: a, Params: p}}
		b := NewBorrower(1, period, period)
		at := func(d time.Duration) (Moment, int64) { return Moment{d, d}, simEpoch + d.Microseconds() }
		answer := func(now time.Duration, ask Ask, hears bool) {
			m, micros := at(now)
			if got := Decide(micros, []*Key{key}, []Ask{ask})[0]; hears {
				b.End(m, ask.Number, got, 0)
			} else {
				b.Fail(ask.Number, true)
			}
		}
		began, _ := at(0)
		b.Want(began, 50)
		now := 20 * time.Millisecond
		if lost == "time" {
			now = 350 * time.Millisecond
		}
		answer(now, b.Begin(began, 1), lost != "ask")
		if m, _ := at(now); lost == "time" && (key.Book.Held() == 0 || b.Live(m) > 0) {
			t.Fatalf("%d are lent, of which %d may be spent", key.Book.Held(), b.Live(m))
		}
		now += 100 * time.Millisecond
		for range 20 {
			m, _ := at(now)
			switch renew, giveBack := b.Due(m); {
			case renew:
				answer(now, b.Renew(m), true)
			case giveBack:
				answer(now, b.Return(m), lost != "return")
				lost = ""
			}
			now += 25 * time.Millisecond
		}
		_, micros := at(time.Second)
		key.Expire(micros)
		if d := key.Account.Decide(micros, 0, key.Book.Held()); d.Remaining != 999 {
			t.Errorf("%d of 1000 remain after one request", d.Remaining)
		}
	}
}
