package sums_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/seed-161337e5/caddyratelimit/internal/sums"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// unsteady is a memory store behind a network: while it is away, batches fail, some after they have arrived.
type unsteady struct {
	*memorystore.Store
	mu      sync.Mutex
	away    bool
	arrives bool // although it seems away
	calls   int
}

func (s *unsteady) AddUsage(ctx context.Context, process string, batch int64, sums []store.Usage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if !s.away || s.arrives {
		if err := s.Store.AddUsage(ctx, process, batch, sums); err != nil {
			return err
		}
	}
	if s.away {
		return errors.New("no answer")
	}
	return nil
}

func (s *unsteady) set(away, arrives bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away, s.arrives = away, arrives
}

// start returns a gatherer on the clock of a bubble, and what it logs.
func start(t *testing.T) (*sums.Gatherer, *unsteady, *observer.ObservedLogs) {
	t.Helper()
	m, err := memorystore.New(memorystore.Options{Now: func() int64 { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	core, logs := observer.New(zap.WarnLevel)
	logger := zap.New(core)
	s := &unsteady{Store: m}
	return sums.New(s, func() *zap.Logger { return logger }), s, logs
}

func window() sums.Window {
	return sums.Window{Zone: "z", Length: time.Hour, Keep: 2, From: time.Now().Truncate(time.Hour).Unix()}
}

// read returns the sums of the window by key, with the kind before it, and the total.
func read(t *testing.T, s *unsteady, w sums.Window) (byKey map[string]sums.Counts, total sums.Counts) {
	t.Helper()
	from := time.Unix(w.From, 0)
	found, next, err := s.ReadUsage(t.Context(), &store.UsageQuery{Zone: w.Zone, Length: w.Length, From: from, To: from.Add(1)}, "", 1<<20)
	if err != nil || next != "" {
		t.Fatal(next, err)
	}
	byKey = make(map[string]sums.Counts)
	for _, u := range found {
		byKey[string(rune(u.Kind))+u.Key] = sums.Counts{Requests: u.Requests, Cost: u.Cost, Refused: u.Refused}
		total = sums.Counts{Requests: total.Requests + u.Requests, Cost: total.Cost + u.Cost, Refused: total.Refused + u.Refused}
	}
	return byKey, total
}

// TestSentOnceInAnOutage: nothing is lost in an outage, and nothing counts twice, whether the answers or the batches are
// lost.
func TestSentOnceInAnOutage(t *testing.T) {
	for _, arrives := range []bool{false, true} {
		t.Run(fmt.Sprint("arrives ", arrives), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, s, logs := start(t)
				w := window()
				n := int64(0)
				for round := range 30 {
					s.set(round%5 != 0, arrives)
					for range 3 * store.MaxUsageBatch {
						n++
						g.Add(w, fmt.Sprint("key ", n%int64(2*store.MaxUsageBatch)), sums.Counts{Requests: 1, Cost: 2})
						if n%10 == 0 {
							g.Add(w, fmt.Sprint("key ", n%3), sums.Counts{Cost: -1, Refused: 1})
						}
					}
					time.Sleep(sums.Interval)
				}
				s.set(false, false)
				time.Sleep(2 * sums.Interval)
				synctest.Wait()
				if byKey, total := read(t, s, w); len(byKey) != 2*store.MaxUsageBatch || total != (sums.Counts{Requests: n, Cost: 2*n - n/10, Refused: n / 10}) {
					t.Errorf("%d keys, total %+v for %d requests", len(byKey), total, n)
				}
				if g.Waiting() != 0 || logs.FilterMessageSnippet("usage waits").Len() != 1 {
					t.Errorf("%d wait, %v", g.Waiting(), logs.All())
				}
				calls := s.calls
				time.Sleep(time.Hour)
				if s.calls != calls {
					t.Error("the store is asked although nothing waits")
				}
			})
		})
	}
}

// TestBoundOfWaitingSums: beyond the bound, sums lose their keys, the total stays exact, and the log says so.
func TestBoundOfWaitingSums(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s, logs := start(t)
		s.set(true, false)
		w := window()
		const more = 500
		for i := range sums.MaxWaiting + more {
			g.Add(w, fmt.Sprint(i), sums.Counts{Requests: 1, Cost: 3})
		}
		g.Add(w, "0", sums.Counts{Requests: 1}) // which has its place
		if n := g.Waiting(); n != sums.MaxWaiting+1 {
			t.Errorf("%d sums wait", n)
		}
		time.Sleep(5 * time.Second)
		g.Add(w, "late", sums.Counts{Refused: 1})
		s.set(false, false)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		byKey, total := read(t, s, w)
		if total != (sums.Counts{Requests: sums.MaxWaiting + more + 1, Cost: 3 * (sums.MaxWaiting + more), Refused: 1}) {
			t.Errorf("the total is %+v", total)
		}
		if rest := byKey["r"]; rest != (sums.Counts{Requests: more, Cost: 3 * more, Refused: 1}) || byKey["k0"].Requests != 2 {
			t.Errorf("the rest is %+v, of the first key %+v", rest, byKey["k0"])
		}
		if logs.FilterMessageSnippet("too many keys wait").Len() != 1 {
			t.Errorf("the log has %v", logs.All())
		}
	})
}

// TestLongKeys: a long key is a hash, and shares its sum with no other key.
func TestLongKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s, _ := start(t)
		w := window()
		long := strings.Repeat("x", store.MaxUsageKey)
		for _, key := range []string{long, long + "y", long + "z", long + "z"} {
			g.Add(w, key, sums.Counts{Requests: 1})
		}
		_, hash := sums.KeyOf(long + "z")
		g.Add(w, hash, sums.Counts{Requests: 5})
		if err := g.Send(t.Context()); err != nil {
			t.Fatal(err)
		}
		byKey, _ := read(t, s, w)
		if len(byKey) != 4 || byKey["k"+long].Requests != 1 || byKey["h"+hash].Requests != 2 || byKey["k"+hash].Requests != 5 {
			t.Errorf("got %v", byKey)
		}
	})
}

// TestCloseSends: the last batch is sent at the end, and the log says what is lost.
func TestCloseSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := window()
		g, s, logs := start(t)
		g.Add(w, "a", sums.Counts{Requests: 1})
		g.Close()
		if _, total := read(t, s, w); total.Requests != 1 || logs.Len() != 0 {
			t.Errorf("%+v, %v", total, logs.All())
		}
		g, s, logs = start(t)
		s.set(true, false)
		g.Add(w, "a", sums.Counts{Requests: 1})
		g.Close()
		g.Close()
		g.Add(w, "b", sums.Counts{Requests: 1})
		if logs.FilterMessageSnippet("usage is lost").Len() != 2 {
			t.Errorf("the log has %v", logs.All())
		}
	})
}

// TestAddAllocatesNothing: another request of a key that waits makes no garbage.
func TestAddAllocatesNothing(t *testing.T) {
	g, _, _ := start(t)
	w := window()
	g.Add(w, "a", sums.Counts{Requests: 1})
	if n := testing.AllocsPerRun(100, func() { g.Add(w, "a", sums.Counts{Requests: 1, Cost: 1}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	(*sums.Gatherer)(nil).Add(w, "a", sums.Counts{Requests: 1})
}
