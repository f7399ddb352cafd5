package topk

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const span = 5 * time.Minute

// truth has exact counts.
type truth map[string]uint64

// check reports an error if a key has not come as often as it is certain.
func (exact truth) check(t *testing.T, top []Entry) {
	t.Helper()
	for _, e := range top {
		if n := exact[e.Key]; n < e.Counts[Requests] {
			t.Errorf("%q came %d times, and at least %d are counted", e.Key, n, e.Counts[Requests])
		}
	}
}

func planOf(r *Recent, key string) string {
	e, _ := r.Of(key)
	return e.Plan
}

// TestHeavyKeysInAFlood: a few frequent keys are found among many keys that come once, and the
// true counts are at most a tenth higher.
func TestHeavyKeysInAFlood(t *testing.T) {
	r, counts := New(span), make(truth)
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 200_000 {
		key := fmt.Sprintf("flood %d", n)
		if random.IntN(20) == 0 { // one of five, each 1 % of all
			key = fmt.Sprintf("heavy %d", random.IntN(5))
		}
		counts[key]++
		r.Add(key, "", Requests, 0)
	}
	top, since := r.Top(1000, Requests)
	counts.check(t, top)
	if since.IsZero() || len(top) != buckets*ways {
		t.Errorf("%d keys since %v", len(top), since)
	}
	for i, e := range top[:5] {
		if !strings.HasPrefix(e.Key, "heavy ") {
			t.Errorf("place %d: %+v", i, e)
		}
	}
	counts["never"] = 0
	for key, n := range counts {
		of, from := r.Of(key)
		c := of.Counts
		if n < c[Requests] || strings.HasPrefix(key, "heavy ") && n > c[Requests]+n/10 || !from.Equal(since) {
			t.Errorf("%q came %d times, estimated %+v since %v", key, n, c, from)
		}
	}
}

// TestLongKeys: keys that differ only in their last byte are counted separately, and only their
// beginnings are kept.
func TestLongKeys(t *testing.T) {
	r := New(span)
	long := strings.Repeat("k", 100_000)
	r.Add(long+"a", "", Requests, 0)
	r.Add(long+"b", "", Requests, 0)
	r.Add(long+"b", "", Requests, 0)
	top, _ := r.Top(10, Requests)
	if len(top) != 2 || top[0].Counts[Requests] != 2 || top[1].Counts[Requests] != 1 || top[0].Length != len(long)+1 || top[0].Key != long[:MaxKey] {
		t.Errorf("%+v", top)
	}
}

// TestRefused: a refused key is found among many more frequent keys that pass, with both counts.
func TestRefused(t *testing.T) {
	r, counts := New(span), make(truth)
	for n := range 100_000 {
		key := fmt.Sprint(n % 5000)
		counts[key]++
		r.Add(key, "", Requests, 0)
		if n%10_000 == 0 {
			counts["refused"]++
			r.Add("refused", "", Refused, 0)
		}
	}
	top, _ := r.Top(5, Refused)
	if counts.check(t, top); len(top) != 1 || top[0].Key != "refused" || top[0].Counts[Refused] != 10 {
		t.Errorf("%+v", top)
	}
	top, _ = r.Top(5, Requests)
	if counts.check(t, top); len(top) != 5 || top[0].Counts[Refused] != 0 {
		t.Errorf("%+v", top)
	}
}

// TestPlans: the last plan of a key is remembered, in all lists that have the key, and until its counts are
// forgotten. A key that takes the place of another one does not get its plan.
func TestPlans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(span)
		r.Add("a", "free", Requests, 0)
		r.Add("a", "pro", Refused, 0)
		r.Add("a", "", Refused, 0) // such as a request that the zone blocks
		for _, by := range []Kind{Requests, Refused} {
			if top, _ := r.Top(1, by); top[0].Plan != "pro" {
				t.Errorf("kind %d: %+v", by, top)
			}
		}
		time.Sleep(span)
		synctest.Wait()
		if r.Add("b", "", Requests, 0); planOf(r, "a") != "pro" || planOf(r, "b") != "" || planOf(r, "never") != "" {
			t.Errorf("plans %q, %q, %q", planOf(r, "a"), planOf(r, "b"), planOf(r, "never"))
		}
		r.Add("a", "free", Requests, 0)
		if top, _ := r.Top(1, Refused); top[0].Plan != "free" || planOf(r, "a") != "free" {
			t.Errorf("%+v, plan %q", top, planOf(r, "a"))
		}
		for n := range 10_000 {
			r.Add(fmt.Sprint(n), "", Requests, 0)
		}
		top, _ := r.Top(10_000, Requests)
		for _, e := range top {
			if e.Plan != "" && e.Key != "a" {
				t.Errorf("%q has the plan %q of another key", e.Key, e.Plan)
			}
		}
		time.Sleep(3 * span)
		synctest.Wait()
		if plan := planOf(r, "a"); plan != "" {
			t.Errorf("plan %q of a key that is forgotten", plan)
		}
	})
}

// TestRotation: the list covers the last one or two spans, the true counts are within the bounds,
// and nothing is kept in the end.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, counts := New(span), make(truth)
		start := time.Now()
		add := func(keys int) {
			for n := range 40 * keys {
				key := fmt.Sprint(n % keys)
				counts[key]++
				r.Add(key, "", Requests, 0)
			}
		}
		add(2000)
		time.Sleep(span)
		synctest.Wait()
		add(3000)
		top, since := r.Top(2000, Requests)
		counts.check(t, top)
		if !since.Equal(start) {
			t.Errorf("since %v, want %v", since, start)
		}
		time.Sleep(span)
		synctest.Wait()
		clear(counts)
		for n := range 40 * 3000 {
			counts[fmt.Sprint(n%3000)]++
		}
		top, since = r.Top(2000, Requests)
		counts.check(t, top)
		if !since.Equal(start.Add(span)) {
			t.Errorf("since %v, want %v", since, start.Add(span))
		}
		time.Sleep(span)
		synctest.Wait()
		if top, since := r.Top(1, Requests); top != nil || !since.IsZero() || r.before.Load() != nil || r.armed.Load() {
			t.Errorf("%+v since %v, although nothing came", top, since)
		}
		r.Add("again", "", Requests, 0)
		time.Sleep(span / 2)
		if top, _ := r.Top(9, Requests); len(top) != 1 || top[0].Counts[Requests] != 1 {
			t.Errorf("%+v", top)
		}
		time.Sleep(3 * span)
	})
}

// TestConcurrentAdds: no count is lost between several goroutines.
func TestConcurrentAdds(t *testing.T) {
	const each, workers = 20_000, 8
	r := New(time.Hour)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for n := range each {
				r.Add("all", "", Requests, 0)
				r.Add(fmt.Sprint(w, n%1000), "", Requests, 0)
			}
		})
	}
	for range 20 {
		r.Top(10, Requests)
	}
	group.Wait()
	top, _ := r.Top(1, Requests)
	c := top[0].Counts[Requests]
	if top[0].Key != "all" || c > each*workers || c < each*workers*9/10 {
		t.Errorf("%+v, want %d of all", top[0], each*workers)
	}
}

// TestAddKeepsNoMemory: known keys do not allocate, and in the long run new keys do not either.
func TestAddKeepsNoMemory(t *testing.T) {
	r := New(time.Hour)
	keys := make([]string, 100_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("%040d", i)
		r.Add(keys[i], "", Requests, 0)
	}
	if n := testing.AllocsPerRun(1000, func() { r.Add(keys[0], "", Requests, 0) }); n != 0 {
		t.Errorf("%v allocations for a known key", n)
	}
	i := 0
	if n := testing.AllocsPerRun(10_000, func() { r.Add(keys[i], "", Requests, 0); i++ }); n != 0 {
		t.Errorf("%v allocations for a new key", n)
	}
}
