package redisstore_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestCrashes runs charges of several zones, refunds, late costs and crashes of instances in any
// order, and compares what passes with a list of all charges: no zone ever admits more than its
// limit, a request that some zone refuses is charged in none, and what a crash has lost is back
// when its window is over.
func TestCrashes(t *testing.T) {
	deep.InTurn(t)
	for _, where := range []string{"memory", "redis"} {
		t.Run(where, func(t *testing.T) {
			f := newFleet(t, where)
			run := 0
			deep.Check(t, 1500, 200_000, func(rt *rapid.T) int {
				run++
				return newOutbreak(rt, f, strconv.Itoa(run)).run()
			})
		})
	}
}

// fleet is instances that share states, and their clock. A Caddy that has crashed comes back as
// another one, on the same connections.
type fleet struct {
	caddys [3]store.Store
	redis  []*redisstore.Store // the same stores; nil in memory
	setNow func(int64)
}

func newFleet(t *testing.T, where string) *fleet {
	f := new(fleet)
	if where == "memory" {
		p := &pair{t: t}
		p.openMemory()
		for i := range f.caddys {
			f.caddys[i] = p.memory
		}
		f.setNow = p.now.Store
		return f
	}
	server := redistest.Start(t)
	for i := range f.caddys {
		var s *redisstore.Store
		s, f.setNow = openWithClock(t, server) // all stores share the clock
		f.caddys[i], f.redis = s, append(f.redis, s)
	}
	return f
}

func (f *fleet) take(t *rapid.T, caddy int, checks []store.Check) []algorithms.Decision {
	decisions := make([]algorithms.Decision, len(checks))
	if err := f.caddys[caddy].Take(context.Background(), checks, decisions); err != nil {
		t.Fatal(err)
	}
	return decisions
}

// adjust returns when all adjustments have been made.
func (f *fleet) adjust(caddy int, adjustments ...store.Adjustment) {
	f.caddys[caddy].Adjust(adjustments...)
	if f.redis != nil {
		f.redis[caddy].Flush()
	}
}

// kinds are the algorithms in all their modes.
var kinds = []struct {
	algorithm string
	limit     algorithms.Limit
}{
	{"token_bucket", algorithms.Limit{}},
	{"token_bucket", algorithms.Limit{Refill: algorithms.RefillInterval}},
	{"leaky_bucket", algorithms.Limit{}},
	{"leaky_bucket", algorithms.Limit{Mode: algorithms.ModeQueue}},
	{"fixed_window", algorithms.Limit{}},
	{"fixed_window", algorithms.Limit{Align: algorithms.AlignFirstRequest}},
	{"sliding_window_log", algorithms.Limit{}},
	{"sliding_window_counter", algorithms.Limit{}},
	{"concurrency", algorithms.Limit{}},
}

// outbreak is everything that happens to some zones and keys.
type outbreak struct {
	*rapid.T
	fleet     *fleet
	zones     []*store.Rule
	accounts  map[string]*account // by zone and key
	exchanges [3][]exchange       // requests in progress, by Caddy
	now       int64
	refused   time.Duration // the wait of the last refusal
	story     []string
}

// exchange is a request in progress, and its charges.
type exchange []charge

type charge struct {
	store.Adjustment
	account *account
	booking *booking
}

func newOutbreak(t *rapid.T, f *fleet, run string) *outbreak {
	o := &outbreak{T: t, fleet: f, accounts: make(map[string]*account), now: storetest.Start}
	for i := range rapid.IntRange(1, 4).Draw(t, "zones") {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		limit := kind.limit
		limit.Events = rapid.Int64Range(1, 12).Draw(t, "events")
		length := time.Duration(rapid.Int64Range(60e6, 240e6).Draw(t, "window")) * time.Microsecond
		switch kind.algorithm {
		case "concurrency":
			limit.Lease = length
		case "token_bucket", "leaky_bucket":
			limit.Burst = rapid.Int64Range(1, 15).Draw(t, "burst")
			fallthrough
		default:
			limit.Window = length
		}
		a, err := algorithms.Get(kind.algorithm)
		if err != nil {
			t.Fatal(err)
		}
		rule, err := store.NewRule(fmt.Sprintf("zone %s-%d", run, i), a, limit, 0)
		if err != nil {
			t.Fatal(err)
		}
		o.zones = append(o.zones, rule)
		o.tell("zone %d: %s %+v", i, kind.algorithm, limit)
	}
	f.setNow(o.now)
	return o
}

func (o *outbreak) run() int {
	steps := rapid.IntRange(10, 50).Draw(o.T, "steps")
	for range steps {
		o.wait(o.gap())
		caddy := rapid.IntRange(0, 2).Draw(o.T, "caddy")
		switch do := rapid.IntRange(0, 19).Draw(o.T, "do"); {
		case do == 0:
			o.crash(caddy)
		case do < 7 && len(o.exchanges[caddy]) > 0:
			i := rapid.IntRange(0, len(o.exchanges[caddy])-1).Draw(o.T, "exchange")
			o.end(caddy, o.exchanges[caddy][i])
			o.exchanges[caddy] = slices.Delete(o.exchanges[caddy], i, i+1)
		default:
			o.take(caddy)
		}
	}
	for caddy := range o.exchanges {
		o.crash(caddy)
	}
	o.allComesBack()
	return steps
}

// gap draws the time until the next event.
func (o *outbreak) gap() int64 {
	z := o.zones[rapid.IntRange(0, len(o.zones)-1).Draw(o.T, "as in zone")].Limit()
	window := max(z.Window, z.Lease).Microseconds()
	switch rapid.IntRange(0, 5).Draw(o.T, "gap") {
	case 0, 1:
		return 0
	case 2:
		return rapid.Int64Range(0, 2*window/z.Events).Draw(o.T, "interval")
	case 3:
		return rapid.Int64Range(0, window).Draw(o.T, "within")
	case 4:
		return max(0, window+rapid.Int64Range(-1, 1).Draw(o.T, "off by"))
	default:
		return max(0, o.refused.Microseconds()+rapid.Int64Range(-1, 1).Draw(o.T, "off by"))
	}
}

// wait moves the clock. Instances that live renew their leases, in the last microsecond; in memory,
// a lease ends that is not given back in time.
func (o *outbreak) wait(micros int64) {
	for until := o.now + micros; o.now < until; {
		next := until
		o.eachSlot(func(_ int, c *charge) {
			if o.fleet.redis != nil && c.booking.ends > o.now {
				next = min(next, max(o.now+1, c.booking.ends-1))
			}
		})
		o.now = next
		o.fleet.setNow(o.now)
		o.eachSlot(func(caddy int, c *charge) {
			if o.fleet.redis == nil || c.booking.ends != o.now+1 {
				return
			}
			if err := o.fleet.redis[caddy].Renew(c.Check); err != nil {
				o.Fatal(err)
			}
			c.booking.ends = o.now + c.account.limit.Lease.Microseconds()
		})
	}
}

// eachSlot calls a function for each slot that a request in progress holds.
func (o *outbreak) eachSlot(visit func(caddy int, c *charge)) {
	for caddy, exchanges := range o.exchanges {
		for _, f := range exchanges {
			for i := range f {
				if f[i].LeaseID != "" {
					visit(caddy, &f[i])
				}
			}
		}
	}
}

// take has a request meet some of the zones.
func (o *outbreak) take(caddy int) {
	var checks []store.Check
	var accounts []*account
	for _, rule := range o.zones {
		if len(checks) > 0 && rapid.IntRange(0, 2).Draw(o.T, "passes by") == 0 {
			continue
		}
		key := rapid.SampledFrom([]string{"a", "a", "b"}).Draw(o.T, "key")
		name := rule.Zone() + " " + key
		if o.accounts[name] == nil {
			o.accounts[name] = newAccount(rule)
		}
		cost := rapid.OneOf(rapid.Just(int64(1)), rapid.Int64Range(1, 4), rapid.Int64Range(1, o.accounts[name].quota())).Draw(o.T, "cost")
		checks = append(checks, store.Check{Rule: rule, Key: key, Cost: cost, LeaseID: storetest.LeaseID(rule)})
		accounts = append(accounts, o.accounts[name])
	}
	decisions := o.fleet.take(o.T, caddy, checks)
	passes := true
	for i, d := range decisions {
		a, cost := accounts[i], checks[i].Cost
		o.tell("%d: caddy %d takes %d of %s %s: %v", o.now, caddy, cost, checks[i].Rule.Zone(), checks[i].Key, d.Allowed)
		switch {
		case d.Allowed && !a.mayFit(o.now, cost):
			o.fail("admitted above the limit: %+v", d)
		case !d.Allowed && a.mustFit(o.now, cost):
			o.fail("refused with room left: %+v", d)
		}
		if !d.Allowed && d.RetryAfter != algorithms.Never {
			o.refused = d.RetryAfter
		}
		passes = passes && d.Allowed
	}
	if !passes {
		return
	}
	var f exchange
	for i := range decisions {
		d, a := &decisions[i], accounts[i]
		if a.queues() && !a.spaced(d.Turn()) {
			o.fail("a turn too soon: %+v", *d)
		}
		f = append(f, charge{
			store.Adjustment{Check: checks[i], At: d.Booked(), Turn: d.Turn()}, a, a.book(o.now, d.Turn(), checks[i].Cost),
		})
	}
	o.exchanges[caddy] = append(o.exchanges[caddy], f)
}

// end ends a request: its slots come back, and of the other charges a part is given back, or they
// turn out to have cost more.
func (o *outbreak) end(caddy int, f exchange) {
	var adjustments []store.Adjustment
	for _, c := range f {
		fate := rapid.IntRange(0, 3).Draw(o.T, "fate")
		switch {
		case c.account.lends() || fate == 0:
			c.Delta = -c.Cost
		case fate == 1:
			c.Delta = -rapid.Int64Range(1, c.Cost).Draw(o.T, "back")
		case fate == 2:
			c.Delta = rapid.Int64Range(1, 20).Draw(o.T, "late")
		default:
			continue
		}
		o.tell("%d: caddy %d adjusts %s %s of %d by %d", o.now, caddy, c.Rule.Zone(), c.Key, c.At, c.Delta)
		adjustments = append(adjustments, c.Adjustment)
		if c.Delta < 0 {
			c.booking.left += c.Delta
		} else {
			c.account.owe(o.now, c.Delta)
		}
	}
	o.fleet.adjust(caddy, adjustments...)
}

// crash ends a Caddy. Everything that its requests were to give back, or to be charged late, is
// lost, except for what was sent before.
func (o *outbreak) crash(caddy int) {
	o.tell("%d: caddy %d crashes with %d requests", o.now, caddy, len(o.exchanges[caddy]))
	for _, f := range o.exchanges[caddy] {
		if rapid.IntRange(0, 3).Draw(o.T, "got out") == 0 {
			o.end(caddy, f)
		}
	}
	o.exchanges[caddy] = nil
}

// allComesBack waits until the windows are over.
func (o *outbreak) allComesBack() {
	type due struct {
		name string
		at   int64
	}
	var order []due
	for name, a := range o.accounts {
		order = append(order, due{name, a.recovers(o.now)})
	}
	slices.SortFunc(order, func(a, b due) int { return int(a.at - b.at) })
	for _, d := range order {
		a := o.accounts[d.name]
		o.wait(d.at - o.now)
		c := store.Check{Rule: a.rule, Key: d.name[len(a.rule.Zone())+1:], Cost: a.quota(), LeaseID: storetest.LeaseID(a.rule)}
		if got := o.fleet.take(o.T, 0, []store.Check{c})[0]; !got.Allowed {
			o.fail("%s at %d: the window is over, and not all of it is back: %+v", d.name, o.now, got)
		}
		o.fleet.adjust(0, store.Adjustment{Check: c, Delta: -c.Cost})
	}
}

func (o *outbreak) tell(format string, args ...any) {
	o.story = append(o.story, fmt.Sprintf(format, args...))
}

func (o *outbreak) fail(format string, args ...any) {
	o.Helper()
	o.tell(format, args...)
	for _, line := range o.story {
		o.Log(line)
	}
	o.FailNow()
}
