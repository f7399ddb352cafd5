package algorithms_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// TestAdjustmentsMakeNoRoom runs takes, refunds and late costs in any order. After each step
// it compares the key with an ideal one, which was charged only what is left of each charge,
// at the time of that charge. The key must never have more room than the ideal one.
func TestAdjustmentsMakeNoRoom(t *testing.T) {
	for name, options := range map[string][]algorithms.Limit{
		"token_bucket":           {{}, {Burst: 1}, {Burst: 5}, {Burst: 40}},
		"leaky_bucket":           {{}, {Burst: 7}, {Mode: algorithms.ModeQueue}, {Mode: algorithms.ModeQueue, Burst: 20}},
		"fixed_window":           {{}},
		"sliding_window_log":     {{}},
		"sliding_window_counter": {{}},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				limit := rapid.SampledFrom(options).Draw(t, "options")
				limit.Events = rapid.Int64Range(1, 12).Draw(t, "events")
				limit.Window = time.Duration(rapid.Int64Range(1000, 5000).Draw(t, "window")) * time.Microsecond
				newLedger(t, name, limit).run(t)
			})
		})
	}
}

// ledger is a key with its charges.
type ledger struct {
	name    string
	params  algorithms.Params
	key     *key
	now     int64
	entries []entry
}

// entry is a charge that was made, and what is left of it.
type entry struct{ at, turn, cost, left int64 }

func newLedger(t rapid.TB, name string, limit algorithms.Limit) *ledger {
	k := &ledger{name: name, key: freshKey(t, name), now: start.UnixMicro()}
	var err error
	if k.params, err = k.key.algorithm.Prepare(limit); err != nil {
		t.Fatal(err)
	}
	return k
}

func freshKey(t rapid.TB, name string) *key {
	a, err := algorithms.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return &key{algorithm: a}
}

func (k *ledger) run(t *rapid.T) {
	for range rapid.IntRange(5, 40).Draw(t, "steps") {
		k.now += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 800), rapid.Int64Range(0, 6000)).Draw(t, "gap")
		switch do := rapid.IntRange(0, 5).Draw(t, "do"); {
		case do < 3 || len(k.entries) == 0:
			cost := rapid.Int64Range(1, 8).Draw(t, "cost")
			if d := k.key.take(k.params, k.now, cost); d.Allowed {
				turn := k.now + d.Delay.Microseconds()
				k.entries = append(k.entries, entry{k.now, turn, cost, cost})
			}
		case do == 3:
			late := rapid.Int64Range(1, 12).Draw(t, "late")
			k.key.adjust(k.params, k.now, k.now, k.now, late)
			k.entries = append(k.entries, entry{k.now, -1, late, late})
		default:
			e := &k.entries[rapid.IntRange(0, len(k.entries)-1).Draw(t, "which")]
			if e.turn < 0 || e.left == 0 {
				continue
			}
			back := rapid.OneOf(rapid.Just(e.left), rapid.Int64Range(1, e.left)).Draw(t, "back")
			e.left -= back
			if k.key.adjust(k.params, k.now, e.at, e.turn, -back); k.queue() {
				e.left += back - k.taken(e, back)
			}
		}
		k.compare(t)
	}
}

// queue reports whether the limit is a queue. A queue may ignore a refund, because the
// requests behind it know when to leave. Then the charge stays.
func (k *ledger) queue() bool { return k.name == "leaky_bucket" && k.params[4] != 0 }

func (k *ledger) taken(e *entry, back int64) int64 {
	if e.cost == back {
		return back
	}
	return 0
}

// compare compares the key with the ideal one, now and for a while after.
func (k *ledger) compare(t *rapid.T) {
	ideal := freshKey(t, k.name)
	for _, e := range k.entries {
		if e.left > 0 {
			ideal.adjust(k.params, e.at, e.at, e.at, e.left)
		}
	}
	for ahead := int64(0); ahead < 12_000; ahead += 700 {
		got, most := k.key.take(k.params, k.now+ahead, 0), ideal.take(k.params, k.now+ahead, 0)
		if got.Remaining > most.Remaining {
			t.Fatalf("at %d there is room for %d, but without the refunded charges for %d: %+v",
				k.now+ahead, got.Remaining, most.Remaining, k.entries)
		}
	}
}

// TestRefundsAreWhole: if nothing of a charge has come back by itself, a refund gives all of
// it back, whatever came in between.
func TestRefundsAreWhole(t *testing.T) {
	for _, name := range []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window_log", "sliding_window_counter"} {
		rapid.Check(t, func(t *rapid.T) {
			quota := rapid.Int64Range(1, 50).Draw(t, "events")
			k := newLedger(t, name, algorithms.Limit{Events: quota, Window: time.Hour})
			held := int64(0)
			for range 30 {
				cost := rapid.Int64Range(1, quota).Draw(t, "cost")
				if k.key.take(k.params, k.now, cost).Allowed {
					held += cost
				}
				back := rapid.Int64Range(0, held).Draw(t, "back")
				k.key.adjust(k.params, k.now, k.now, k.now, -back)
				held -= back
				if d := k.key.take(k.params, k.now, 0); d.Remaining != quota-held {
					t.Fatalf("%s: %d remain, %d of %d are held", name, d.Remaining, held, quota)
				}
			}
		})
	}
}

func (k *key) adjust(p algorithms.Params, now, at, turn, delta int64) {
	switch a := k.algorithm.(type) {
	case algorithms.Counter:
		k.state = a.Adjust(k.state, p, now, at, turn, delta)
	case algorithms.Recorder:
		a.Adjust(&k.log, p, now, at, delta)
	}
}
