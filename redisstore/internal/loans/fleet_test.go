package loans

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// fleet is some processes on one store, in which calls take no time. Their requests are of one zone.
type fleet struct {
	rule   *store.Rule
	keys   []*lend.Key
	names  []string
	tables []*Table
	now    time.Duration
	counts
}

// counts are how requests were decided, and what else was asked.
type counts struct {
	local  int // from what a process holds
	plain  int // by a call as in zones that do not lend
	twice  int // after such a call, which found that others have parts of the key
	asks   int // by an ask
	due    int // asks that no request waits for
	others int // by a call of the lending script that borrows nothing
}

func (c *counts) requests() int { return c.local + c.plain + c.asks + c.others }

func newFleet(t *testing.T, processes, keys int) *fleet {
	t.Helper()
	f := &fleet{now: time.Second}
	var err error
	limit := algorithms.Limit{Events: 10_000_000, Window: 100 * 24 * time.Hour}
	if f.rule, err = store.NewLendingRule("z", algorithms.TokenBucket{}, limit, 0, 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	for i := range keys {
		f.names = append(f.names, strconv.Itoa(i))
		f.keys = append(f.keys, &lend.Key{Account: &lend.Counter{Algorithm: algorithms.TokenBucket{}, Params: f.rule.At(0).Params}})
	}
	for range processes {
		f.tables = append(f.tables, New())
	}
	return f
}

func (f *fleet) micros() int64 { return 1_700_000_000_000_000 + f.now.Microseconds() }

func (f *fleet) moment() lend.Moment { return lend.Moment{Mono: f.now, Wall: f.now} }

func (f *fleet) decide(key int, a lend.Ask) lend.Answer {
	return lend.Decide(f.micros(), []*lend.Key{f.keys[key]}, []lend.Ask{a})[0]
}

// request makes a request of a key at a process, as package redisstore does.
func (f *fleet) request(process, key int) {
	t, name, now := f.tables[process], f.names[key], f.moment()
	e, lent := t.Find(f.rule, name, 1, now)
	if e == nil && !lent {
		if f.keys[key].Expire(f.micros()); len(f.keys[key].Book) == 0 {
			f.plain++
			f.decide(key, lend.Ask{Cost: 1})
			return
		}
		f.twice++
		e = t.FindLent(f.rule, name, 1, now)
	}
	var d algorithms.Decision
	if e == nil {
		f.others++
		f.decide(key, lend.Ask{Cost: 1})
		t.Lent(f.rule, name, len(f.keys[key].Book) > 0, now)
		return
	}
	if e.SpendNow(now, 1, &d) {
		f.local++
		return
	}
	if next, _ := e.Next(now, &one, 0, &d); next == lend.Begin {
		if ask, ok := e.Begin(now, &one, false); ok {
			f.asks++
			e.End(now, ask.Number, f.decide(key, ask), 0, 0)
			return
		}
	}
	f.others++
	e.ChargedAlone(f.micros(), f.decide(key, lend.Ask{Cost: 1}).Remaining)
}

// run has so many requests come in a second, for a time. It counts those of the last part of it.
func (f *fleet) run(perSecond float64, warm, counted time.Duration, process, key func() int) {
	tended, begin, end := f.now, f.now+warm, f.now+warm+counted
	for f.now < end {
		if f.now < begin {
			f.counts = counts{}
		}
		f.request(process(), key())
		f.now += time.Duration(float64(time.Second) / perSecond)
		if f.now-tended < 25*time.Millisecond {
			continue
		}
		tended = f.now
		for _, t := range f.tables {
			for _, d := range t.Due(f.moment()) {
				f.due++
				key, _ := strconv.Atoi(d.Key)
				d.End(f.moment(), d.Ask.Number, f.decide(key, d.Ask), 0, 0)
			}
		}
	}
}

// prices are about what requests cost Redis and a process, as parts of what a plain call costs that is
// shared by many: see bench/RESULTS.md.
const (
	localPrice = 0.1
	askPrice   = 4
	duePrice   = 2.5
)

// price returns what a request costs.
func (c *counts) price() float64 {
	all := localPrice*float64(c.local) + float64(c.plain+c.twice) + askPrice*float64(c.asks+c.others) + duePrice*float64(c.due)
	return all / float64(c.requests())
}

// TestCallsOfAFleet: where few keys come often, lending saves most calls. Where all keys come rarely,
// however many there are, it costs nothing: no key that comes often by chance makes all processes
// borrow it.
func TestCallsOfAFleet(t *testing.T) {
	t.Parallel()
	keys := deep.Steps(1_000, 100_000) // bench/RESULTS.md has the figures of all
	for _, c := range []struct {
		name      string
		processes int
		perSecond float64 // of each key, on average
		skewed    bool
		price     float64 // at most
	}{
		{"uniform, 16 processes", 16, 1.1, false, 1.02},
		{"uniform, one process", 1, 0.28, false, 1.02},
		{"uniform, one process, rarer", 1, 0.1, false, 1.02},
		{"Zipf(1.1), 16 processes", 16, 1.5, true, 0.55},
		{"Zipf(1.1), one process", 1, 0.4, true, 0.45},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, r := newFleet(t, c.processes, keys), rand.New(rand.NewPCG(1, 2))
			for _, table := range f.tables {
				table.CountProcesses(int64(c.processes))
			}
			zipf := rand.NewZipf(r, 1.1, 1, uint64(keys-1))
			key := func() int { return r.IntN(keys) }
			if c.skewed {
				key = func() int { return int(zipf.Uint64()) }
			}
			f.run(c.perSecond*float64(keys), 30*time.Second, 5*time.Second, func() int { return r.IntN(c.processes) }, key)
			if price := f.price(); price > c.price {
				t.Errorf("a request costs %.3f plain calls, want at most %g", price, c.price)
			}
			n := float64(f.requests())
			t.Logf("a request costs %.3f plain calls: local %.3f, plain %.3f, twice %.4f, asks %.4f, others %.4f, due %.4f", f.price(),
				float64(f.local)/n, float64(f.plain)/n, float64(f.twice)/n, float64(f.asks)/n, float64(f.others)/n, float64(f.due)/n)
		})
	}
}

// one is a check of cost 1.
var one = store.Check{Cost: 1}
