package lending_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/algorithms/lend"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/layer/layertest"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/lending"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/loans"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// TestDryRunsAreChargedOnce: a call finds that parts of a key are lent to another process. What it has charged for a
// check that is decided by itself is not charged again by the next call, whether or not this process holds anything.
func TestDryRunsAreChargedOnce(t *testing.T) {
	counter, err := algorithms.Get("fixed_window")
	if err != nil {
		t.Fatal(err)
	}
	lends, err := store.NewLendingRule("z", counter, algorithms.Limit{Events: 1000, Window: time.Hour}, 0, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	dry := storetest.Rule(t, "dry", "fixed_window", algorithms.Limit{Events: 9, Window: time.Hour})
	for _, holds := range []bool{false, true} {
		below, done := &lender{Below: layertest.New(t), keys: make(map[string]*lend.Key)}, make(chan struct{})
		below.SetNow(storetest.Start)
		top := lending.New(below, &lending.Config{Loans: loans.New(), Lender: below, PerCall: link.MaxPerCall, Timeout: time.Second, Done: done})
		go top.Tend()
		take := func(checks ...store.Check) []algorithms.Decision {
			decisions := make([]algorithms.Decision, len(checks))
			if err := top.Take(t.Context(), checks, decisions); err != nil {
				t.Fatal(err)
			}
			return decisions
		}
		theirs := store.Check{Rule: lends, Key: "theirs", Cost: 1}
		other := link.Ask{Check: &theirs, Ask: lend.Ask{Borrower: 9, Number: 1, Want: 50, Lease: time.Hour.Microseconds()}}
		if err := below.AskTogether(t.Context(), []*link.Ask{&other}); err != nil || other.Held == 0 {
			t.Fatal(other.Held, err)
		}
		checks := []store.Check{theirs, {Rule: dry, Key: "k", Cost: 1, Independent: true}}
		for held := int64(0); holds && held == 0; {
			mine := store.Check{Rule: lends, Key: "mine", Cost: 1}
			take(mine)
			lent, _ := top.Loans.Held(top.Loans.Now())
			if held = lent["z"]; held > 0 {
				checks = append(checks, mine)
			}
		}
		asks := below.asks
		decisions := take(checks...)
		if below.asks == asks {
			t.Fatalf("holds %v: nothing was asked about the key that is lent", holds)
		}
		if slices.ContainsFunc(decisions, func(d algorithms.Decision) bool { return !d.Allowed }) || decisions[1].Remaining != 8 {
			t.Errorf("holds %v: %+v", holds, decisions)
		}
		if left := take(store.Check{Rule: dry, Key: "k", Peek: true})[0].Remaining; left != 8 {
			t.Errorf("holds %v: %d are left of 9 after one dry run", holds, left)
		}
		close(done)
		top.Wait()
	}
}
