package main

import (
	"math/rand"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/gate"
)

// scenario is an upstream, its clients, and what happens to them.
type scenario struct {
	name    string
	seconds float64
	up      func() *upstream
	groups  []group
	changes []change
	classes int
	gates   int                          // each in front of the same upstream, with a part of the clients; 0 is 1
	uneven  bool                         // the first gate gets as much as all others
	clock   func(i int, now int64) int64 // the error of the clock of a gate in ns; nil: none

	best  int     // the static limit that is best, for the tests; of all gates
	share float64 // of its useful answers that each seed must have
	// polite is the part of the requests of the first group that must be served. 0: any.
	polite float64
}

// group is clients of one kind.
type group struct {
	name    string
	keys    int                          // 0: each request has a new one
	rate    func(second float64) float64 // requests a second, of all keys
	work    func(*rand.Rand) float64     // ns at the bottleneck
	class   int
	timeout int64 // ns that a client waits for its answer
	retries int
	hostile
	from, to float64 // only requests of these seconds count; 0 to 0: all
}

// change changes the upstream at a second.
type change struct {
	at float64
	do func(*upstream)
}

// result counts how the requests of a group ended.
type result struct{ asked, good, refused, failed, late int }

// run is a scenario that was played.
type run struct {
	groups []result
	limits []int // of all gates together, in each second
	good   []int // answers in time, in each second
}

// useful is how many answers came in time.
func (r *run) useful() (n int) {
	for _, g := range r.groups {
		n += g.good
	}
	return n
}

// maxWait is the longest that a request waits in a gate, in ns.
const maxWait = 1e9

// rival makes the limits of a run. One without limits is the gate as it is.
type rival struct {
	name  string
	limit func(share int) limiter // share: in how many parts a static limit is divided
	fifo  bool                    // one queue, the oldest first
}

// limiter says how many requests may run.
type limiter interface {
	N() int

	// Done is called when a request that ran for took ns is over, while so many ran.
	Done(now, took int64, running int, a gate.Answer)
}

// queue is what is in front of the upstream.
type queue interface {
	Enter(now int64, p *gate.Place, key uint64, class int) (running bool)
	Leave(now int64, p *gate.Place) (running bool)
	Hold(now int64, p *gate.Place) time.Duration
	Done(now int64, p *gate.Place, a gate.Answer)
}

// front is a gate with the limit of a rival.
type front struct {
	*gate.Gate
	options gate.Options
	limit   limiter
}

func (f *front) set() {
	if n := f.limit.N(); n != f.options.Max {
		f.options.Min, f.options.Max = n, n
		f.Configure(f.options)
	}
}

// served tells the limit that a request is over.
func (f *front) served(now, took int64, a gate.Answer) {
	s, _ := f.State()
	f.limit.Done(now, took, s.Running+1, a)
	f.set()
}

// world is a run under way.
type world struct {
	*scenario
	*engine
	rnd    *rand.Rand
	up     *upstream
	gates  []queue
	newKey uint64
	run    *run
}

// play plays a scenario from a seed.
func play(s *scenario, seed int64, r rival) *run {
	w := &world{
		scenario: s, engine: &engine{}, rnd: rand.New(rand.NewSource(seed)), up: s.up(), newKey: 1 << 40,
		run: &run{groups: make([]result, len(s.groups)), good: make([]int, int(s.seconds)+1)},
	}
	w.up.engine = w.engine
	n := max(s.gates, 1)
	for i := range n {
		o := gate.Options{MaxWait: maxWait, Classes: s.classes, Wall: func() int64 {
			if s.clock == nil {
				return w.now
			}
			return w.now + s.clock(i, w.now)
		}}
		switch {
		case r.fifo:
			w.gates = append(w.gates, &fifo{limit: r.limit(n).N(), running: make(map[*gate.Place]bool)})
		case r.limit != nil:
			f := &front{gate.New(o), o, r.limit(n)}
			f.set()
			w.gates = append(w.gates, f)
		default:
			w.gates = append(w.gates, gate.New(o))
		}
	}
	for i := range s.groups {
		if g := &s.groups[i]; g.connections > 0 {
			w.connect(g, &w.run.groups[i], uint64(i+1)<<20)
		} else {
			w.arrivals(i)
		}
	}
	for _, c := range s.changes {
		w.at(int64(c.at*1e9), func() { w.up.change(c.do) })
	}
	for i := range int(s.seconds) {
		w.at(int64(i+1)*1e9, w.note)
	}
	w.engine.run(int64(s.seconds * 1e9))
	return w.run
}

// note notes the limits that the gates find.
func (w *world) note() {
	sum := 0
	for _, g := range w.gates {
		if own, ok := g.(*gate.Gate); ok {
			s, _ := own.State()
			sum += s.Limit
		}
	}
	w.run.limits = append(w.run.limits, sum)
}

// arrivals plans the requests of a group.
func (w *world) arrivals(i int) {
	g := &w.groups[i]
	peak := 0.0
	for t := 0.0; t < w.seconds; t += 0.5 {
		peak = max(peak, g.rate(t))
	}
	var next func()
	next = func() {
		w.after(int64(w.rnd.ExpFloat64()/peak*1e9)+1, func() {
			next()
			if w.rnd.Float64()*peak <= g.rate(float64(w.now)/1e9) {
				w.arrive(g, &w.run.groups[i], uint64(i+1)<<20)
			}
		})
	}
	next()
}

// arrive makes a client of a group ask.
func (w *world) arrive(g *group, res *result, firstKey uint64) {
	id := firstKey + uint64(w.rnd.Intn(max(g.keys, 1)))
	if g.keys == 0 {
		w.newKey++
		id = w.newKey
	}
	w.send(g, res, id, nil)
}

// send sends a request of a key. Its client calls ended, if there is one, when it has its answer or has left.
func (w *world) send(g *group, res *result, id uint64, ended func(good bool)) {
	second := float64(w.now) / 1e9
	t := &try{
		world: w, group: g, res: res, counts: g.to == 0 || second >= g.from && second < g.to,
		key: mix(id), class: g.class, left: g.retries, ended: ended,
	}
	if t.counts {
		res.asked++
	}
	t.gate = w.gates[w.choose()]
	t.work = g.work(w.rnd)
	w.at(w.now+g.timeout, t.leave)
	t.ask()
}

// choose chooses a gate.
func (w *world) choose() int {
	n := len(w.gates)
	switch {
	case n == 1:
		return 0
	case w.uneven && w.rnd.Intn(2) == 0:
		return 0
	}
	return w.rnd.Intn(n)
}

// mix is a hash of keys.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
