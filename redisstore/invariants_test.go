package redisstore_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestInvariants checks what each algorithm promises, in both stores, on random schedules and
// without a model: only by what was admitted when.
func TestInvariants(t *testing.T) {
	deep.InTurn(t)
	t.Parallel()
	server := redistest.Start(t)
	for _, name := range algorithms.Names() {
		for _, where := range []string{"memory", "redis"} {
			t.Run(name+"/"+where, func(t *testing.T) {
				p := newPair(t, server)
				run := 0
				deep.Check(t, 600, 30_000, func(rt *rapid.T) int {
					run++
					w := newWitness(rt, p, server, name, where+strconv.Itoa(run))
					w.side = newRedisSide(t, p.redis, server)
					if where == "memory" {
						w.side, w.server = storeSide{p.memory}, nil
					}
					return w.run()
				})
			})
		}
	}
}

// witness watches one key of one store.
type witness struct {
	*rapid.T
	pair      *pair
	side      side
	server    *redistest.Server // nil unless the store is in Redis
	algorithm string
	key       string
	limit     algorithms.Limit
	rule      *store.Rule

	now      int64
	start    int64 // the first now, and Redis's own time then
	begun    time.Time
	last     algorithms.Decision
	admitted []admitted
}

// admitted is a request that passed.
type admitted struct {
	store.Adjustment
	at   int64
	ends int64 // the end of its lease
}

func newWitness(t *rapid.T, p *pair, server *redistest.Server, algorithm, key string) *witness {
	w := &witness{T: t, pair: p, server: server, algorithm: algorithm, key: key, limit: drawLimit(t, algorithm)}
	w.now = storetest.Start + rapid.Int64Range(0, 1e9).Draw(t, "offset")
	switch {
	case algorithm == "concurrency":
		w.limit.Lease = max(w.limit.Lease, longLease)
	case algorithm == "fixed_window" && rapid.Bool().Draw(t, "on the calendar"):
		w.limit, w.now = drawCalendar(t, w.limit.Events)
	}
	w.rule = rule(t, algorithm, w.limit)
	w.start, w.begun = w.now, w.redisTime()
	return w
}

func (w *witness) run() int {
	steps := rapid.IntRange(20, 60).Draw(w.T, "steps")
	for range steps {
		w.wait(min(max(0, drawGap(w.T, w.limit, w.last)), max(0, latest-w.now)))
		if w.algorithm == "concurrency" && len(w.admitted) > 0 && rapid.IntRange(0, 5).Draw(w.T, "do") == 0 {
			one := &w.admitted[rapid.IntRange(0, len(w.admitted)-1).Draw(w.T, "which")]
			w.side.adjust(w.T, one.Adjustment)
			one.ends = 0
		}
		cost := drawCost(w.T, w.limit, w.last)
		w.last = w.ask(cost)
		wait := w.last.RetryAfter
		if wait > 0 && wait != algorithms.Never && w.now < latest && rapid.Bool().Draw(w.T, "come back") {
			w.comeBack(cost, wait.Microseconds())
		}
	}
	w.promises()
	w.freshAtReset()
	if w.algorithm == "concurrency" {
		for _, one := range w.admitted {
			w.side.adjust(w.T, one.Adjustment)
		}
	}
	return steps
}

func (w *witness) wait(micros int64) {
	w.now += micros
	w.pair.set(w.now, 0)
}

func (w *witness) take(key string, cost int64) (algorithms.Decision, store.Check) {
	c := store.Check{Rule: w.rule, Key: key, Cost: cost, LeaseID: storetest.LeaseID(w.rule)}
	return w.side.take(w.T, c), c
}

// ask takes a cost, and checks what that changes.
func (w *witness) ask(cost int64) algorithms.Decision {
	before, _ := w.take(w.key, 0)
	kept, asked := w.stored(), w.redisTime()
	d, check := w.take(w.key, cost)
	after, _ := w.take(w.key, 0)
	w.remaining(before)
	switch {
	case d.Quota != before.Quota || d.At != w.now:
		w.Fatalf("another quota or time: %+v, then %+v", before, d)
	case !d.Allowed && (after != before || w.stored() != kept):
		w.Fatalf("a refusal changed something: %+v, then %+v", before, after)
	case !d.Allowed && (d.RetryAfter == algorithms.Never) != (cost > d.Quota):
		w.Fatalf("cost %d of %d: %+v", cost, d.Quota, d)
	case d.Allowed && cost > before.Remaining:
		w.Fatalf("cost %d passed with %d left", cost, before.Remaining)
	case d.Allowed && (d.Remaining != before.Remaining-cost || after.Remaining != d.Remaining || after.ResetAfter != d.ResetAfter):
		w.Fatalf("cost %d: %+v, then %+v, then %+v", cost, before, d, after)
	case !d.Allowed && cost <= before.Remaining && w.limit.MaxWait == 0:
		w.Fatalf("cost %d did not pass with %d left", cost, before.Remaining)
	}
	if d.Allowed && cost > 0 {
		w.admitted = append(w.admitted, admitted{store.Adjustment{Check: check, At: d.Booked(), Turn: d.Turn(), Delta: -cost}, w.now, w.now + w.limit.Lease.Microseconds()})
		w.livesUntilReset(d, asked)
	}
	w.remaining(after)
	return d
}

// comeBack follows RetryAfter, and checks that a microsecond earlier is too early.
func (w *witness) comeBack(cost, wait int64) {
	w.wait(wait - 1)
	if d := w.ask(cost); d.Allowed || d.RetryAfter != time.Microsecond {
		w.Fatalf("cost %d, a microsecond before %d: %+v", cost, wait, d)
	}
	w.wait(1)
	if w.last = w.ask(cost); !w.last.Allowed {
		w.Fatalf("cost %d, after %d: %+v", cost, wait, w.last)
	}
}

// stored returns everything that Redis has under the key.
func (w *witness) stored() string {
	if w.server == nil {
		return ""
	}
	key := w.pair.redis.Key(w.rule, w.key)
	pipe := w.server.Admin().Pipeline()
	dump, expires := pipe.Dump(context.Background(), key), pipe.PExpireTime(context.Background(), key)
	_, _ = pipe.Exec(context.Background()) // DUMP of an absent key is an error
	return dump.Val() + expires.Val().String()
}

// livesUntilReset checks that the key does not expire before its state is worth nothing. The
// argument asked is when the charge was asked for, on Redis's own clock, by which keys expire.
func (w *witness) livesUntilReset(d algorithms.Decision, asked time.Time) {
	if w.server == nil {
		return
	}
	key := w.pair.redis.Key(w.rule, w.key)
	expires, err := w.server.Admin().PExpireTime(context.Background(), key).Result()
	if err != nil {
		w.Fatal(err)
	}
	shortest := expires - time.Duration(w.redisTime().UnixNano())
	longest := expires - time.Duration(asked.UnixNano()).Truncate(time.Millisecond)
	// States of numbers live up to half longer, and some seconds. An expiry that suffices is kept.
	// Since it was set, the test's time has passed, and Redis's own.
	want := d.ResetAfter.Truncate(time.Millisecond) + testMargin
	most := want + time.Duration(w.now-w.start)*time.Microsecond
	if shortest-most-22*time.Second > most/2 || // the sum may be too large for a Duration
		longest < want-w.redisTime().Sub(w.begun) {
		w.Fatalf("the key lives from %v to %v, want %v and half more at most: %+v", shortest, longest, want, d)
	}
}

// testMargin is how much longer keys live in tests, see NewWithClock: a test's time does not pass
// for Redis.
const testMargin = time.Hour

func (w *witness) redisTime() (now time.Time) {
	if w.server != nil {
		var err error
		if now, err = w.server.Admin().Time(context.Background()).Result(); err != nil {
			w.Fatal(err)
		}
	}
	return now
}

// freshAtReset checks that a key whose quota is back cannot be told from a new one, so that it
// may expire then.
func (w *witness) freshAtReset() {
	d, _ := w.take(w.key, 0)
	w.wait(d.ResetAfter.Microseconds())
	for _, cost := range []int64{0, 1 + min(d.Quota/3, 10_000), 1} {
		old, _ := w.take(w.key, cost)
		fresh, _ := w.take(w.key+"fresh", cost)
		if old != fresh {
			w.Fatalf("cost %d at reset: %+v, but for a new key %+v", cost, old, fresh)
		}
	}
}
