package lend

import (
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// rareKey is a key of one process, whose requests come at regular times.
type rareKey struct {
	key   *Key
	b     *Borrower
	now   time.Duration
	asks  int
	plain int // requests of which the borrower says that a loan is not worth it
	told  int64
}

func newRareKey(t *testing.T, events int64, window, period time.Duration) *rareKey {
	t.Helper()
	var a algorithms.FixedWindow
	l := algorithms.Limit{Events: events, Window: window}
	p, err := a.Prepare(l)
	if err != nil {
		t.Fatal(err)
	}
	return &rareKey{key: &Key{Account: &Counter{Algorithm: a, Params: p}}, b: NewBorrower(1, period, Longest(l, period)), now: time.Second}
}

func (r *rareKey) ask(a Ask) {
	r.asks++
	answer := Decide(simEpoch+r.now.Microseconds(), []*Key{r.key}, []Ask{a})[0]
	r.b.End(Moment{r.now, r.now}, a.Number, answer, 0)
	r.told = max(r.told, answer.Lease)
}

// request makes a request, and before it what was due since the last one.
func (r *rareKey) request(gap time.Duration) {
	for end := r.now + gap; r.now < end; r.now += min(gap, 25*time.Millisecond) {
		m := Moment{r.now, r.now}
		switch renew, giveBack := r.b.Due(m); {
		case renew:
			r.ask(r.b.Renew(m))
		case giveBack:
			r.ask(r.b.Return(m))
		}
	}
	m := Moment{r.now, r.now}
	switch {
	case !r.b.Want(m, 1):
		r.plain++
		Decide(simEpoch+r.now.Microseconds(), []*Key{r.key}, []Ask{{Cost: 1}})
	case r.b.Next(m, 1, 0) == Reserved:
		r.b.Spend(m, 1)
	default:
		r.ask(r.b.Begin(m, 1))
	}
}

// TestLoansOfRareKeys: however often requests come, a loan saves calls, or the borrower finds out that
// it does not.
func TestLoansOfRareKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		events int64
		gap    time.Duration
		calls  int // at most, for 400 requests
	}{
		{"often", 1_000_000, 10 * time.Millisecond, 40},
		{"each second", 1_000_000, time.Second, 60},
		{"each five seconds", 1_000_000, 5 * time.Second, 240},
		{"hardly ever", 1_000_000, time.Minute, 410},
		{"little is free", 30, time.Second, 440},
	} {
		r := newRareKey(t, c.events, 24*time.Hour, 100*time.Millisecond)
		for range 400 {
			r.request(c.gap)
		}
		if calls := r.asks + r.plain; calls > c.calls {
			t.Errorf("%s: %d asks and %d plain calls for 400 requests, want at most %d", c.name, r.asks, r.plain, c.calls)
		}
		t.Logf("%s: %d asks and %d plain calls for 400 requests, loans last up to %d µs", c.name, r.asks, r.plain, r.told)
	}
}

// TestLongLoansAreSmall: what is lent for long is at most a quarter of what is free, and a key that has
// many loans is lent briefly.
func TestLongLoansAreSmall(t *testing.T) {
	t.Parallel()
	r := newRareKey(t, 10_000, 24*time.Hour, 100*time.Millisecond)
	long, brief := int64(0), 0
	for i := range MaxLoans {
		a := Decide(simEpoch, []*Key{r.key}, []Ask{{Borrower: uint64(i + 1), Number: 1, Want: 1000, Lease: 30e6, Brief: 300_000}})[0]
		switch a.Lease {
		case 30e6:
			long += a.Held
		case 300_000:
			brief++
		default:
			t.Fatalf("loan %d: %+v", i, a)
		}
	}
	if long > 10_000/4 || brief != MaxLoans/2 {
		t.Errorf("%d are lent for long, %d loans are brief", long, brief)
	}
	t.Logf("%d of 10000 are lent for long", long)
}
