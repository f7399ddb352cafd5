package redisstore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/faultproxy"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
	"github.com/seed-161337e5/caddyratelimit/store"
	"github.com/seed-161337e5/caddyratelimit/store/storetest"
)

// lostCharge says what happened to a charge whose answer was lost.
type lostCharge int

const (
	mayBeMade lostCharge = iota
	neverMade
	alwaysMade
)

// TestAtMostOnce loses requests and replies between the store and Redis, and counts in Redis
// itself what was carried out: requests that were admitted exactly once, and lost ones at most
// once, charges and adjustments alike. Where the fault leaves no doubt, the count must be exact.
func TestAtMostOnce(t *testing.T) {
	any := []faultproxy.Fault{
		faultproxy.CutBefore, faultproxy.CutAfter, faultproxy.CutWithin,
		faultproxy.Late, faultproxy.SwallowCommand, faultproxy.SwallowReply,
	}
	const patient, hasty = 30 * time.Second, 100 * time.Millisecond
	for _, c := range []struct {
		name    string
		timeout time.Duration
		faults  []faultproxy.Fault
		command string // the command that meets it; "": the script in either way
		flush   bool   // the script is forgotten now and then
		reload  bool   // Redis loads its data again now and then
		lost    lostCharge
	}{
		{name: "no fault", timeout: patient, lost: neverMade},
		{name: "cut before", timeout: patient, faults: any[:1], lost: neverMade},
		{name: "cut before or unknown", timeout: patient, faults: any[:1], flush: true, lost: neverMade},
		{name: "cut after", timeout: patient, faults: any[1:3], command: "evalsha", lost: alwaysMade},
		{name: "cut after text", timeout: patient, faults: any[1:3], command: "eval", flush: true, lost: alwaysMade},
		{name: "loading", timeout: patient, reload: true, lost: neverMade},
		{name: "anything", timeout: hasty, faults: any, flush: true, lost: mayBeMade},
	} {
		t.Run(c.name, func(t *testing.T) {
			var options []redistest.Option
			if c.reload {
				options = append(options, redistest.WithArgs("--enable-debug-command", "local"))
			}
			server := redistest.Start(t, options...)
			proxy := faultproxy.Start(t, server.Addr())
			s := open(t, redisstore.Options{Address: proxy.Addr(), Timeout: c.timeout})
			w := newOnce(t, s)
			w.warm()
			if len(c.faults) > 0 {
				proxy.Inject(choose(t, c.faults, c.command))
			}
			stop := w.meddle(server, c.flush, c.reload)
			w.run(func() bool {
				return w.adjustments() >= onceAdjustments && w.mostHeld.Load() >= 2 && !slices.ContainsFunc(c.faults, func(f faultproxy.Fault) bool { return proxy.Count(f) < 3 })
			})
			stop()
			proxy.Inject(nil)
			w.check(server, c.lost)
			w.checkAdjustments(server, c.lost)
			for _, fault := range c.faults {
				t.Logf("%s: %d", fault, proxy.Count(fault))
				if proxy.Count(fault) == 0 {
					t.Errorf("%s did not happen", fault)
				}
			}
			if lost := w.count(lostAnswer); (lost > 0) != (len(c.faults) > 0 || c.reload) {
				t.Errorf("%d answers were lost", lost)
			}
		})
	}
}

// warm makes Redis know the script, however slow this machine is.
func (w *once) warm() {
	w.t.Helper()
	patient.Until(w.t, "the script to be known", func() bool {
		var d [1]algorithms.Decision
		return w.store.Take(context.Background(), []store.Check{{Rule: w.hot, Key: "warm", Cost: 1}}, d[:]) == nil
	})
}

// choose draws a fault for one in eight scripts.
func choose(t *testing.T, faults []faultproxy.Fault, command string) func(string) faultproxy.Fault {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var mu sync.Mutex
	return func(name string) faultproxy.Fault {
		mu.Lock()
		defer mu.Unlock()
		if name != command && (command != "" || name != "evalsha" && name != "eval") || random.IntN(8) > 0 {
			return faultproxy.None
		}
		return faults[random.IntN(len(faults))]
	}
}

// once is clients that charge in every way, and note their answers.
type once struct {
	t     *testing.T
	store *redisstore.Store
	hot   *store.Rule
	cold  []*store.Rule
	slots *store.Rule
	late  *store.Rule

	mu       sync.Mutex
	attempts []onceAttempt
	adjusted map[string]int64 // by how much, by key in Redis

	held, mostHeld atomic.Int64
}

// onceAttempt is one request of a client, and its answer.
type onceAttempt struct {
	keys   []string // keys in Redis that only this attempt uses; none if it was for the hot key
	holds  bool     // it asked for a slot, so it may have been refused
	answer onceAnswer
}

type onceAnswer int

const (
	admittedAnswer onceAnswer = iota
	refusedAnswer
	lostAnswer
	unsentAnswer
)

const onceSlots = 6

func newOnce(t *testing.T, s *redisstore.Store) *once {
	counter := algorithms.Limit{Events: 1e6, Window: 24 * time.Hour, Align: algorithms.AlignFirstRequest}
	w := &once{t: t, store: s, hot: storetest.Rule(t, "hot", "fixed_window", counter), adjusted: make(map[string]int64)}
	w.late = storetest.Rule(t, "late", "fixed_window", counter)
	for i := range 3 {
		w.cold = append(w.cold, storetest.Rule(t, fmt.Sprint("cold", i), "fixed_window", counter))
	}
	w.slots = storetest.Rule(t, "slots", "concurrency", algorithms.Limit{Events: onceSlots, Lease: 10 * time.Minute})
	return w
}

// run has 32 clients send a hundred requests each, and more if that is not enough.
func (w *once) run(enough func() bool) {
	var clients sync.WaitGroup
	for client := range 32 {
		clients.Go(func() {
			for n := 0; n < 100 || n < 5000 && !enough(); n++ {
				key := fmt.Sprintf("%d-%d", client, n)
				switch client % 5 {
				case 0:
					w.take(store.Check{Rule: w.hot, Key: "hot", Cost: 1})
				case 1:
					w.take(store.Check{Rule: w.cold[0], Key: key, Cost: 1})
				case 2:
					w.take(
						store.Check{Rule: w.cold[0], Key: key, Cost: 1},
						store.Check{Rule: w.cold[1], Key: key, Cost: 1},
						store.Check{Rule: w.cold[2], Key: key, Cost: 1},
					)
				case 3:
					w.take(
						store.Check{Rule: w.slots, Cost: 1, LeaseID: storetest.LeaseID(w.slots)},
						store.Check{Rule: w.cold[0], Key: key, Cost: 1},
					)
				case 4:
					if charged, ok := w.charge(store.Check{Rule: w.late, Key: key, Cost: onceCost}); ok {
						w.adjust(charged, onceDelta(n))
					}
				}
			}
		})
	}
	clients.Wait()
}

func (w *once) take(checks ...store.Check) {
	a := onceAttempt{holds: checks[0].LeaseID != ""}
	for _, c := range checks {
		if slices.Contains(w.cold, c.Rule) {
			a.keys = append(a.keys, w.store.Key(c.Rule, c.Key))
		}
	}
	decisions := make([]algorithms.Decision, len(checks))
	switch err := w.store.Take(context.Background(), checks, decisions); {
	case errors.Is(err, store.ErrUnavailable):
		a.answer = unsentAnswer
		time.Sleep(20 * time.Millisecond) // until a client sends its next request
	case err != nil:
		a.answer = lostAnswer
	case slices.ContainsFunc(decisions, func(d algorithms.Decision) bool { return !d.Allowed }):
		a.answer = refusedAnswer
	case a.holds:
		w.hold(checks[0], decisions[0])
	}
	w.mu.Lock()
	w.attempts = append(w.attempts, a)
	w.mu.Unlock()
}

// hold keeps a slot for a moment.
func (w *once) hold(c store.Check, d algorithms.Decision) {
	now := w.held.Add(1)
	for most := w.mostHeld.Load(); now > most && !w.mostHeld.CompareAndSwap(most, now); most = w.mostHeld.Load() {
	}
	time.Sleep(time.Millisecond)
	w.held.Add(-1)
	w.store.Adjust(store.Adjustment{Check: c, At: d.Booked(), Turn: d.Turn(), Delta: -1})
}

// meddle makes Redis forget the script, or load its data, until it is stopped.
func (w *once) meddle(server *redistest.Server, flush, reload bool) (stop func()) {
	ctx := context.Background()
	done := make(chan struct{})
	pause := 2 * time.Millisecond
	if reload {
		pause = 50 * time.Millisecond
	}
	var end sync.WaitGroup
	end.Go(func() {
		for flush || reload {
			if flush {
				if err := server.Admin().ScriptFlush(ctx).Err(); err != nil {
					w.t.Error(err)
				}
			}
			if reload {
				w.reload(server)
			}
			select {
			case <-done:
				return
			case <-time.After(pause):
			}
		}
	})
	return func() { close(done); end.Wait() }
}

// reload has Redis load its data so slowly that it answers LOADING meanwhile.
func (w *once) reload(server *redistest.Server) {
	ctx := context.Background()
	for _, command := range [][]any{
		{"config", "set", "loading-process-events-interval-bytes", "1024"},
		{"config", "set", "key-load-delay", "200"},
		{"debug", "reload"},
	} {
		if err := server.Admin().Do(ctx, command...).Err(); err != nil {
			w.t.Errorf("%v: %v", command, err)
		}
	}
}

func (w *once) count(answer onceAnswer) (n int) {
	for _, a := range w.attempts {
		if a.answer == answer {
			n++
		}
	}
	return n
}

// check compares the answers of clients with what Redis has counted.
func (w *once) check(server *redistest.Server, lost lostCharge) {
	w.t.Helper()
	made := charges(w.t, server, w.attempts)
	var hot struct{ admitted, lost int }
	total := 0
	for _, a := range w.attempts {
		if len(a.keys) == 0 {
			switch a.answer {
			case admittedAnswer:
				hot.admitted++
			case lostAnswer:
				hot.lost++
			}
			continue
		}
		count := made[a.keys[0]]
		for _, key := range a.keys {
			if made[key] != count {
				w.t.Errorf("%s was charged %d times, %s %d times", key, made[key], a.keys[0], count)
			}
		}
		total += count
		least, most := 0, 0
		if a.answer == admittedAnswer {
			least, most = 1, 1
		} else if a.answer == lostAnswer {
			least, most = lost.bounds(1)
			if a.holds {
				least = 0
			}
		}
		if count < least || count > most {
			w.t.Errorf("%s was charged %d times, want %d to %d (answer %d)", a.keys[0], count, least, most, a.answer)
		}
	}
	hotCount := charges(w.t, server, []onceAttempt{{keys: []string{w.store.Key(w.hot, "hot")}}})[w.store.Key(w.hot, "hot")]
	least, most := lost.bounds(hot.lost)
	if hotCount < hot.admitted+least || hotCount > hot.admitted+most {
		w.t.Errorf("the hot key was charged %d times, %d were admitted and %d lost", hotCount, hot.admitted, hot.lost)
	}
	w.t.Logf("%d attempts: %d admitted, %d refused, %d lost, %d not sent; charged %d and %d of the hot key",
		len(w.attempts), w.count(admittedAnswer), w.count(refusedAnswer), w.count(lostAnswer), w.count(unsentAnswer), total, hotCount)
	w.checkSlots(server)
}

// checkSlots: never more slots were held than there are, and all come back.
func (w *once) checkSlots(server *redistest.Server) {
	if n := w.mostHeld.Load(); n > onceSlots || n < 2 {
		w.t.Errorf("%d slots were held at once, there are %d", n, onceSlots)
	}
	key := w.store.Key(w.slots, "")
	patient.Until(w.t, "all slots to come back", func() bool { return server.Slots(key) == 0 })
}

// bounds returns how many of n lost charges were made, at least and at most.
func (l lostCharge) bounds(n int) (least, most int) {
	switch l {
	case neverMade:
		return 0, 0
	case alwaysMade:
		return n, n
	}
	return 0, n
}

// charges reads the counts of fixed windows: the second of their three numbers.
func charges(t *testing.T, server *redistest.Server, attempts []onceAttempt) map[string]int {
	t.Helper()
	ctx := context.Background()
	states := make(map[string]*redis.StringCmd)
	_, err := server.Admin().Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, a := range attempts {
			for _, key := range a.keys {
				states[key] = p.Get(ctx, key)
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	counts := make(map[string]int)
	for key, state := range states {
		if text, err := state.Bytes(); err == nil {
			counts[key] = int(binary.BigEndian.Uint64(text[8:16]))
		} else if !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
	}
	return counts
}
