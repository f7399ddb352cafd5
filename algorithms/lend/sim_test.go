package lend

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"

	"github.com/seed-161337e5/caddyratelimit/algorithms"
)

// simulation is a fleet in which everything happens at times that are drawn.
type simulation struct {
	*rand.Rand
	key     *Key
	central []Account // for each limit, one limiter that gets what was admitted under it
	nodes   []*simNode
	period  time.Duration
	longest time.Duration // between two asks
	timeout time.Duration
	latency func() time.Duration
	lost    float64 // the share of messages that are lost
	now     time.Duration
	queue   events
	made    int // events

	admitted, possible    int64
	requests, calls, over int
	promised              int // answers that promised more than was left
}

// simNode is a process with clocks of its own.
type simNode struct {
	b       *Borrower
	rate    float64 // of its clocks
	jump    time.Duration
	waiting []int64
	dead    bool
	own     int64 // what it knows that it has admitted
	others  int64 // what others had admitted by its last answer
}

type event struct {
	at     time.Duration
	number int
	do     func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].number < e[j].number
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any     { o := *e; x := o[len(o)-1]; *e = o[:len(o)-1]; return x }

func (s *simulation) in(d time.Duration, do func()) {
	s.made++
	heap.Push(&s.queue, event{s.now + d, s.made, do})
}

// run lets everything happen until a time.
func (s *simulation) run(end time.Duration) {
	for len(s.queue) > 0 && s.queue[0].at <= end {
		e := heap.Pop(&s.queue).(event)
		s.now = e.at
		e.do()
	}
}

const simEpoch = 1_700_000_000_000_000

func (s *simulation) micros() int64 { return simEpoch + s.now.Microseconds() }

func (s *simulation) moment(n *simNode) Moment {
	t := time.Duration(float64(s.now) * n.rate)
	return Moment{t, t + n.jump}
}

// admit tells the one limiter of an admission. It refuses what is too much.
func (s *simulation) admit(cost int64) {
	s.admitted += cost
	c := s.central[0]
	if !c.Decide(s.micros(), cost, 0).Allowed {
		s.over++
	}
	c.Charge(s.micros(), cost)
}

// decide is the store, with the limit in force.
func (s *simulation) decide(a Ask) Answer {
	answer := Decide(s.micros(), []*Key{s.key}, []Ask{a})[0]
	if answer.Allowed {
		s.told(answer.Remaining, a.Cost, 0)
	}
	return answer
}

// told tells what a request has learned that is left after its cost, before one limiter knows of that. It must not be more
// than the limiter has, and what has been admitted that could not be known.
func (s *simulation) told(remaining, cost, unknown int64) {
	if remaining > max(0, s.central[0].Decide(s.micros(), 0, 0).Remaining-cost)+unknown {
		s.promised++
	}
}

// unknown returns what others have admitted since a process had its last answer.
func (s *simulation) unknown(n *simNode) int64 { return s.admitted - n.own - n.others }

func (s *simulation) request(n *simNode, cost int64) {
	s.requests++
	n.b.Want(s.moment(n), cost)
	s.next(n, cost)
}

func (s *simulation) next(n *simNode, cost int64) {
	switch n.b.Next(s.moment(n), cost, s.timeout) {
	case Reserved:
		s.told(n.b.Allowed(s.moment(n)).Remaining, cost, s.unknown(n))
		if s.lost > 0 && s.IntN(4) == 0 { // as if another zone had to be asked
			s.in(time.Duration(s.Float64()*float64(s.timeout)*3), func() {
				switch {
				case n.dead:
				case s.IntN(2) == 0:
					n.b.Cancel(cost)
				case n.b.Spend(s.moment(n), cost):
					n.own += cost
					s.admit(cost)
				default:
					s.alone(n, cost)
				}
			})
			return
		}
		if n.b.Spend(s.moment(n), cost) {
			n.own += cost
			s.admit(cost)
		}
	case Alone:
		s.calls++
		s.in(s.latency(), func() { s.alone(n, cost) })
	case Wait:
		n.waiting = append(n.waiting, cost)
	case Begin:
		s.send(n, n.b.Begin(s.moment(n), cost))
	}
}

// alone has the store decide a request that asks for itself.
func (s *simulation) alone(n *simNode, cost int64) {
	answer := s.decide(Ask{Cost: cost})
	if !answer.Allowed {
		n.b.RefusedAlone(answer.Remaining)
		return
	}
	n.b.ChargedAlone(answer.At, answer.Remaining)
	n.own += cost
	s.admit(cost)
}

// send has the store decide an ask. A message that is lost may arrive much later.
func (s *simulation) send(n *simNode, a Ask) {
	s.calls++
	over := false
	end := func() {
		w := n.waiting
		n.waiting = nil
		for _, cost := range w {
			s.next(n, cost)
		}
	}
	delay := func() time.Duration {
		if s.lost > 0 && s.Float64() < s.lost {
			return time.Duration(s.Float64() * 20 * float64(s.period))
		}
		return s.latency()
	}
	s.in(s.timeout, func() {
		if !over && !n.dead {
			over = true
			n.b.Fail(a.Number, true)
			end()
		}
	})
	if s.lost > 0 && s.Float64() < s.lost {
		if s.Float64() < 0.5 { // the store says that it has not begun
			s.in(delay(), func() {
				if !over && !n.dead {
					over = true
					n.b.Fail(a.Number, false)
					end()
				}
			})
		}
		return
	}
	s.in(delay(), func() {
		answer := s.decide(a)
		others := s.admitted - n.own
		if answer.Allowed && a.Cost > 0 {
			s.admit(a.Cost)
		}
		if s.lost > 0 && s.Float64() < s.lost {
			return
		}
		s.in(delay(), func() {
			if n.dead {
				return
			}
			if n.b.End(s.moment(n), a.Number, answer, 0) && answer.Allowed {
				n.others, n.own = others, n.own+a.Cost
				s.told(n.b.Allowed(s.moment(n)).Remaining, 0, s.unknown(n))
			}
			if !over {
				over = true
				end()
			}
		})
	})
}

// tend renews and returns loans, again and again.
func (s *simulation) tend(n *simNode) {
	if n.dead {
		return
	}
	switch renew, giveBack := n.b.Due(s.moment(n)); {
	case renew:
		s.send(n, n.b.Renew(s.moment(n)))
	case giveBack:
		s.send(n, n.b.Return(s.moment(n)))
	}
	s.in(s.period/4, func() { s.tend(n) })
}

// account returns an account of a new key.
func account(a algorithms.Algorithm, p algorithms.Params) Account {
	if c, ok := a.(algorithms.Counter); ok {
		return &Counter{Algorithm: c, Params: p}
	}
	return &Log{Algorithm: a.(algorithms.Recorder), Params: p, Log: new(algorithms.Log)}
}

func newSimulation(r *rand.Rand, name string, l algorithms.Limit, period, latency time.Duration) *simulation {
	a, err := algorithms.Get(name)
	if err != nil {
		panic(err)
	}
	p, err := a.Prepare(l)
	if err != nil {
		panic(err)
	}
	return &simulation{
		Rand: r, key: &Key{Account: account(a, p)}, central: []Account{account(a, p)},
		period: period, longest: Longest(l, period), timeout: 10 * max(latency, time.Millisecond), latency: func() time.Duration { return latency },
	}
}

func (s *simulation) join() *simNode {
	n := &simNode{b: NewBorrower(s.Uint64(), s.period, s.longest), rate: 1}
	s.nodes = append(s.nodes, n)
	s.tend(n)
	return n
}

// flood makes requests at random times, at a rate that may change, for nodes of which some have
// more of them than others. It counts what one limiter would admit.
func (s *simulation) flood(end time.Duration, rate func(time.Duration) float64, shift bool) {
	exact, total := s.central[0], 0.0
	switch c := exact.(type) {
	case *Counter:
		other := *c
		exact = &other
	case *Log:
		other := *c
		other.Log = new(algorithms.Log)
		exact = &other
	}
	for i := range s.nodes {
		total += 1 / float64(i+1)
	}
	var arrive func()
	arrive = func() {
		x, i := s.Float64()*total-1, 0
		for ; x > 0 && i < len(s.nodes)-1; x -= 1 / float64(i+1) {
			i++
		}
		if shift {
			i = (i + int(s.now/time.Second)*7) % len(s.nodes)
		}
		if exact.Decide(s.micros(), 1, 0).Allowed {
			exact.Charge(s.micros(), 1)
			s.possible++
		}
		s.request(s.nodes[i], 1)
		s.in(time.Duration(-math.Log(1-s.Float64())/rate(s.now)*1e9), arrive)
	}
	s.in(0, arrive)
	s.run(end)
}
