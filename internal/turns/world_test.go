package turns

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/clock"
	"github.com/seed-161337e5/caddyratelimit/memorystore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// width is how long a turn of cost 1 is.
const width = 100 * time.Millisecond

// world is a queue in a real store, on the test's own clock.
type world struct {
	*testing.T
	random *rand.Rand
	store  *memorystore.Store
	rule   *store.Rule
	burst  int64
}

func newWorld(t *testing.T, seed uint64, burst int64) *world {
	s, err := memorystore.New(memorystore.Options{Now: func() int64 { return time.Now().UnixMicro() }})
	if err != nil {
		t.Fatal(err)
	}
	rule := storetest.Rule(t, "zone", "leaky_bucket", algorithms.Limit{
		Events: int64(time.Second / width), Window: time.Second, Burst: burst, Mode: algorithms.ModeQueue,
	})
	return &world{t, rand.New(rand.NewPCG(seed, seed)), s, rule, burst} // no secret
}

func (w *world) take(cost int64) algorithms.Decision {
	decisions := make([]algorithms.Decision, 1)
	if err := w.store.Take(w.Context(), []store.Check{{Rule: w.rule, Key: "key", Cost: cost}}, decisions); err != nil {
		w.Fatal(err)
	}
	return decisions[0]
}

// end returns the time at which all turns of the queue are over.
func (w *world) end() int64 {
	d := w.take(0)
	return d.At + d.ResetAfter.Microseconds()
}

// turn gives back the turn of a request.
func (w *world) turn(cost int64, d *algorithms.Decision) store.Adjustment {
	return store.GiveBack(&store.Check{Rule: w.rule, Key: "key", Cost: cost}, d)
}

// join has a request of a cost wait.
func (w *world) join(q *Queues, cost int64) *Waiter {
	d := w.take(cost)
	return q.Join(w.turn(cost, &d), d.Delay)
}

func (w *world) sleep(most time.Duration) {
	time.Sleep(time.Duration(w.random.Int64N(most.Microseconds())) * time.Microsecond)
	synctest.Wait()
}

// queues returns the queues of a process, for which the store is never closed.
func (w *world) queues() *Queues {
	return New(clock.System{}, where{w.store.Adjust, true})
}

// where is where queues are.
type where struct {
	adjust func(...store.Adjustment)
	open   bool
}

func (s where) Adjust(adjustments ...store.Adjustment) { s.adjust(adjustments...) }
func (s where) Acquire() bool                          { return s.open }
func (where) Release() error                           { return nil }

// size returns the number of queues and of spare turns.
func (q *Queues) size() (queues, spare int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.lines), q.spare
}

// checkEmpty fails the test if any queue or turn is left.
func (q *Queues) checkEmpty(t *testing.T) {
	t.Helper()
	synctest.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.lines) != 0 || q.spare != 0 || len(q.returns) != 0 || q.busy {
		t.Errorf("left over: %d queues, %d spare turns, %d returns, %v", len(q.lines), q.spare, len(q.returns), q.busy)
	}
}

// request is a request that waits.
type request struct {
	waiter  *Waiter
	process *Queues
	cost    int64
	own     int64 // the turn that the queue gave it
	planned int64 // its turn in the model
}

// ready reports whether the turn has come.
func (r *request) ready() bool {
	select {
	case <-r.waiter.Ready():
		return true
	default:
		return false
	}
}
