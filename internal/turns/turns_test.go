package turns

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/deep"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestModel: requests of one cost join and leave in any order. Each gets the turn that it has in a
// plain list, in which all requests move up when one leaves. The store keeps the turns of the
// requests that wait, and no others.
func TestModel(t *testing.T) {
	const steps = 1000
	handedOn, served := 0, 0
	for seed := range uint64(deep.Steps(20, 400)) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, seed, 40)
			q := w.queues()
			var waiting []*request
			end := int64(0) // of the queue, by the model
			for range steps {
				switch n := w.random.IntN(10); {
				case n < 5:
					now := time.Now().UnixMicro()
					d := w.take(1)
					if !d.Allowed {
						if int64(len(waiting)) < w.burst-1 {
							t.Fatalf("refused while %d wait", len(waiting))
						}
						break
					}
					if d.Turn() != max(now, end) {
						t.Fatalf("turn at %d, want %d", d.Turn(), max(now, end))
					}
					end = d.Turn() + width.Microseconds()
					if d.Delay > 0 {
						waiting = append(waiting, &request{waiter: q.Join(w.turn(1, &d), d.Delay), own: d.Turn(), planned: d.Turn()})
					}
				case n < 8:
					leave := 1
					if w.random.IntN(20) == 0 {
						leave = len(waiting)
					}
					for ; leave > 0 && len(waiting) > 0; leave-- {
						i := w.random.IntN(len(waiting))
						if q.Leave(waiting[i].waiter) {
							t.Fatal("left after its turn")
						}
						handedOn++
						for j := len(waiting) - 1; j > i; j-- {
							waiting[j].planned = waiting[j-1].planned
						}
						waiting = slices.Delete(waiting, i, i+1)
						end -= width.Microseconds()
					}
				default:
					w.sleep(3 * width)
				}
				synctest.Wait()
				now := time.Now().UnixMicro()
				for len(waiting) > 0 && waiting[0].planned <= now {
					first := waiting[0]
					if !first.ready() || first.waiter.At() != first.planned {
						t.Fatalf("the first request, given %d, has its turn: %v at %d, want %d", first.own, first.ready(), first.waiter.At(), first.planned)
					}
					served++
					waiting = waiting[1:]
				}
				for _, r := range waiting {
					if r.ready() {
						t.Fatal("a turn came too early")
					}
				}
				if got := w.end(); end > now && got != end {
					t.Fatalf("the queue ends at %d, want %d: %d wait", got, end, len(waiting))
				}
				if queues, spare := q.size(); spare != 0 || len(waiting) == 0 && queues != 0 {
					t.Fatalf("%d wait, %d turns are spare, and %d queues are left", len(waiting), spare, queues)
				}
			}
			for _, r := range waiting {
				q.Leave(r.waiter)
			}
		})
	}
	t.Logf("%d left, %d had their turns", handedOn, served)
}

// TestInvariants: there are two processes and several costs, and some requests leave at the very moment of their turn. The turns of two requests never overlap, no request
// is later than the queue has said, and requests of one cost and process stay in order.
func TestInvariants(t *testing.T) {
	const steps = 600
	most, spare := 0, 0
	for seed := range uint64(deep.Steps(30, 600)) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, seed, 60)
			processes := []*Queues{w.queues(), w.queues()}
			type span struct{ from, to int64 }
			var used []span
			var waiting []*request
			use := func(at, cost int64) { used = append(used, span{at, at + cost*width.Microseconds()}) }
			serve := func(r *request) {
				at := r.waiter.At()
				if at > r.own {
					t.Fatalf("a turn at %d, but given %d", at, r.own)
				}
				use(at, r.cost)
			}
			for range steps {
				switch n := w.random.IntN(12); {
				case n < 5:
					cost := 1 + w.random.Int64N(3)
					d := w.take(cost)
					switch {
					case !d.Allowed:
					case d.Delay == 0:
						use(d.Turn(), cost)
					default:
						process := processes[w.random.IntN(2)]
						waiting = append(waiting, &request{waiter: process.Join(w.turn(cost, &d), d.Delay), process: process, cost: cost, own: d.Turn()})
					}
				case n < 9:
					leave := 1
					if w.random.IntN(20) == 0 {
						leave = len(waiting)
					}
					for ; leave > 0 && len(waiting) > 0; leave-- {
						i := w.random.IntN(len(waiting))
						if r := waiting[i]; r.process.Leave(r.waiter) {
							serve(r)
						}
						waiting = slices.Delete(waiting, i, i+1)
					}
				default:
					w.sleep(3 * width)
				}
				if w.random.IntN(3) > 0 {
					synctest.Wait()
				}
				waiting = slices.DeleteFunc(waiting, func(r *request) bool {
					if !r.ready() {
						return false
					}
					for _, before := range waiting {
						if before == r {
							break
						}
						if before.cost == r.cost && before.process == r.process && !before.ready() {
							t.Fatal("a request was overtaken")
						}
					}
					serve(r)
					return true
				})
				_, here := processes[0].size()
				_, there := processes[1].size()
				most, spare = max(most, len(waiting)), max(spare, here, there)
			}
			slices.SortFunc(used, func(a, b span) int { return int(a.from - b.from) })
			for i := 1; i < len(used); i++ {
				if used[i].from < used[i-1].to {
					t.Fatalf("turns from %d to %d and from %d", used[i-1].from, used[i-1].to, used[i].from)
				}
			}
			for _, r := range waiting {
				r.process.Leave(r.waiter)
			}
			time.Sleep(time.Minute) // until all turns are over
			for _, q := range processes {
				q.checkEmpty(t)
			}
		})
	}
	t.Logf("at most %d waited, and %d turns were spare", most, spare)
}

// TestCostsComeBack: when requests of several costs leave in any order, the queue takes back all of
// their turns, although a turn in one line may have to wait for one in another.
func TestCostsComeBack(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, seed, 1000)
			q := w.queues()
			w.take(1)
			want := w.end()
			var waiting []*Waiter
			for i := range 300 {
				cost := 1 + w.random.Int64N(4)
				one := w.join(q, cost)
				if i < 20 {
					want += cost * width.Microseconds()
				} else {
					waiting = append(waiting, one)
				}
			}
			w.random.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
			for _, one := range waiting {
				q.Leave(one)
			}
			synctest.Wait()
			if _, spare := q.size(); w.end() != want || spare != 0 {
				t.Errorf("the queue ends at %d with %d spare turns, want %d with none", w.end(), spare, want)
			}
		})
	}
}

// TestManyLeave: leaving takes the same time however many requests wait. Otherwise this test would
// take minutes.
func TestManyLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 100_000
		w := newWorld(t, 1, all+1)
		q := w.queues()
		w.take(1)
		var waiting []*Waiter
		for range all {
			waiting = append(waiting, w.join(q, 1))
		}
		w.random.Shuffle(all, func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
		for _, one := range waiting {
			q.Leave(one)
		}
		synctest.Wait()
		if d := w.take(1); d.Delay != width {
			t.Errorf("the next waits for %v, want %v", d.Delay, width)
		}
		q.checkEmpty(t)
	})
}

// TestSpareTurns: a turn that the queue does not take back, because another process has a later
// one, goes to the next request that joins, and is kept no longer than until it is over.
func TestSpareTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 100)
		here, there := w.queues(), w.queues()
		w.take(1)
		began := time.Now().UnixMicro()
		one, two := w.join(here, 1), w.join(here, 1)
		behind := w.join(there, 1)
		here.Leave(one)
		here.Leave(two)
		synctest.Wait()
		if _, spare := here.size(); spare != 2 {
			t.Fatalf("%d turns are spare, want 2", spare)
		}
		next := w.join(here, 1) // the queue's fourth turn comes back
		synctest.Wait()
		_, spare := here.size()
		if got := time.Duration(w.end()-began) * time.Microsecond; got != 4*width || spare != 1 {
			t.Errorf("the queue ends after %v with %d spare turns, want %v with 1", got, spare, 4*width)
		}
		there.Leave(behind)
		time.Sleep(width)
		synctest.Wait()
		if behind.place != nil || next.place != nil || next.At()-began != width.Microseconds() {
			t.Errorf("the next goes after %d us, want %v", next.At()-began, width)
		}
		time.Sleep(width)
		here.checkEmpty(t)
		there.checkEmpty(t)
	})
}

// TestBounds: the number of spare turns is bounded.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1)
		q := New(clock.System{}, where{func(adjustments ...store.Adjustment) { adjustments[0].Done(false) }, true})
		for at := range int64(maxSpare + 10) {
			q.Leave(q.Join(w.turn(1, &algorithms.Decision{At: at}), time.Minute))
		}
		synctest.Wait()
		if _, spare := q.size(); spare != maxSpare {
			t.Errorf("%d turns are spare, want %d", spare, maxSpare)
		}
		time.Sleep(2 * time.Hour)
		q.checkEmpty(t)
	})
}

// TestClosedStore: no turns are given back to a store that is closed.
func TestClosedStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 1)
		q := New(clock.System{}, where{func(...store.Adjustment) { t.Error("a turn was given back") }, false})
		q.Leave(q.Join(w.turn(1, new(algorithms.Decision)), time.Hour))
		q.checkEmpty(t)
	})
}
