package trouble_test

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
)

// workers is how many requests there are at once.
const workers = 4

// traffic sends random requests until it is stopped.
func (s *storm) traffic(round int) (stop func()) {
	var over atomic.Bool
	var all sync.WaitGroup
	for n := range workers {
		random := rand.New(rand.NewPCG(s.random.Uint64(), uint64(round*workers+n)))
		all.Go(func() {
			for !over.Load() {
				s.step(random)
				s.steps.Add(1)
			}
		})
	}
	stop = sync.OnceFunc(func() { over.Store(true); all.Wait() })
	s.t.Cleanup(stop)
	return stop
}

// begun is a request that Redis or somebody else has let pass, and that has not ended.
type begun struct {
	account  *account
	by       by
	instance int
	cost     int64
	forgets  int  // of Redis before that
	behind   bool // the master that let it pass may not have told the next one
	held     *held
	end      chan struct{}
}

// step sends a random request, or ends one.
func (s *storm) step(random *rand.Rand) {
	a := s.draw(random)
	if random.IntN(3) == 0 {
		s.mu.Lock()
		h := a.pop(random)
		s.mu.Unlock()
		if h != nil {
			s.release(h, random)
			return
		}
	}
	i, cost, header := random.IntN(len(s.stores)), a.cost, ""
	if a.cost > 1 && random.IntN(2) == 0 {
		cost = 1 + random.Int64N(5)
		header = strconv.FormatInt(cost, 10)
	}
	end := make(chan struct{})
	var h *held
	if a.slots || a.delays() {
		h = &held{wait: end}
	}
	start := s.enter(i)
	answer := a.send(i, a.client, header, h)
	b := &begun{account: a, by: answer.by, instance: i, cost: cost, held: h, end: end}
	s.noted(b, start, answer)
	switch {
	case !answer.passed || h == nil:
	case random.IntN(2) == 0:
		s.release(b, random)
	default:
		s.mu.Lock()
		a.held = append(a.held, b)
		s.mu.Unlock()
	}
}

// draw draws an account. Clients that came last come more often.
func (s *storm) draw(random *rand.Rand) *account {
	c := s.cells[random.IntN(len(s.cells))]
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.accounts[c]
	if random.IntN(2) == 0 && len(all) > 2 {
		return all[len(all)-1-random.IntN(2)]
	}
	return all[random.IntN(len(all))]
}

// enter says when a request begins. What the fault does before each request is done.
func (s *storm) enter(i int) moment {
	s.turn.RLock()
	defer s.turn.RUnlock()
	if s.now.stage == steady && s.now.fault.each != nil {
		s.now.fault.each(s.fleet, i)
	}
	return s.now
}

func (s *storm) moment() moment {
	s.turn.RLock()
	defer s.turn.RUnlock()
	return s.now
}

// release ends a request. Its response may tell a late cost, or that it costs nothing.
func (s *storm) release(b *begun, random *rand.Rand) {
	a := b.account
	changes := a.slots || random.IntN(3) > 0
	if changes {
		s.corrected(b)
	}
	b.held.finish = func(w http.ResponseWriter, _ *http.Request) {
		switch {
		case a.slots || !changes:
		case a.special == "late":
			w.Header().Set("X-Cost", strconv.FormatInt(b.cost+lateCost, 10))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}
	close(b.end)
	<-b.held.over
}

// pop takes a request that has not ended.
func (a *account) pop(random *rand.Rand) *begun {
	if len(a.held) == 0 {
		return nil
	}
	n := random.IntN(len(a.held))
	b := a.held[n]
	a.held = append(a.held[:n], a.held[n+1:]...)
	return b
}
