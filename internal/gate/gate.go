// Package gate lets requests through to an upstream: so many at once as the upstream can use. It finds
// that number itself, lets the other requests wait shortly, and shares the slots fairly among keys.
//
// The limit. While requests wait, the gate alternates between two limits, one step apart, and counts
// useful answers per second under each of them. If twice the requests bring twice the answers, the
// upstream is not full and the limit rises. If they bring no more, they only wait longer inside the
// upstream, and the limit falls. Latencies are not judged, so nobody has to say what is slow. While
// nothing waits, nothing is learned, and the limit stays.
//
// The rhythm. Phases follow the wall clock: the upper limit holds in odd ones. So all gates in front of
// one upstream go up and down together, without a word between them. If each of them probed alone, each
// would see that it gets more when it takes more, and no limit would ever rest.
//
// The queue. A slot that is free goes to the class that has had the least for its weight. In it, it goes to the key of which
// the fewest requests run, of equal ones to the key that has had the least time of slots, and of that key to the oldest
// request. Once the queue was never empty for half of the longest wait, the newest goes first: its client is still there.
// Keys that were never served share the turns of one key, so a crowd of new keys cannot starve the known ones.
//
// The shares. Nobody takes a slot back from a request that runs long. So while several keys come, each leaves as many slots
// free as it has, and slots that a key has beyond those of another do not count for that one. At most twice as many run as
// the limit says. A client that leaves keeps its slot for as long as requests have one on average.
//
// Nothing here has a clock or a goroutine. Times are passed in, so a simulator can play a year. A
// request that waits is a [Place] in a list, and its own goroutine waits for the channel of the place.
package gate

import (
	"math"
	"sync"
	"time"
)

// Options configure a Gate.
type Options struct {
	// Min and Max bound the limit, and Max what runs. A Min below 1 is 1. 0 is no Max.
	Min, Max int

	// MaxWait is the longest that a request waits. The gate has no timer: the caller must call [Gate.Leave].
	MaxWait time.Duration

	// Classes is how many classes there are, up to [MaxClasses]. 0 is 1. Each weighs ten times as much as the next one.
	Classes int

	// Wall returns the nanoseconds of the wall clock. It is called once in a phase. nil: the times that are
	// passed in are those of the wall clock.
	Wall func() int64
}

// Gate decides who runs, who waits, and who is next. Its methods may be called from many goroutines at once. They get the
// time in ns; one before that of an earlier call counts as that.
type Gate struct {
	mu               sync.Mutex
	now              int64
	limit            *limit
	most             int   // requests that may ever run, 0 for no bound
	stands           int64 // ns after which a queue that was never empty stands
	running, waiting int
	classes          []*class
	last             int // the class of requests without a priority
	keys             map[name]*key
	all              []*key // the same keys
	hand             int    // which of them may be forgotten next
	free             []*key // that were forgotten
	seen             *seen
	refusals         float64 // for each answer, lately
	busy             int64   // ns, since when the queue was never empty
	tight            int64   // ns, since when requests have had to wait again and again
	held             int64   // ns, when the last one that has to wait came
	seq              uint64  // counts keys that begin to wait
	served           float64 // what the class had that was next last
}

// lately is how many useful answers ago a refusal counts for a third.
const lately = 64

// New returns a gate that has seen nothing.
func New(o Options) *Gate {
	g := &Gate{limit: newLimit(), keys: make(map[name]*key), seen: new(seen), held: -lull}
	g.Configure(o)
	return g
}

// Configure gives the gate other bounds, waits and classes. What it has learned stays. Requests of classes
// that are gone go to the last class.
func (g *Gate) Configure(o Options) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limit.configure(o)
	g.stands, g.most, g.last = int64(o.MaxWait/2), o.Max, max(o.Classes, 1)-1
	for i := len(g.classes); i <= g.last; i++ {
		weight := math.Pow10(MaxClasses - i)
		g.classes = append(g.classes, &class{weight: weight, newcomers: &key{name: name{class: i}}, shared: -lull})
	}
	g.fill()
}

// Place is the place of one request: in the queue, then in the upstream.
type Place struct {
	// Ready is closed when a request that has waited has its slot, or has made room for a newer one of its key: see Leave.
	Ready chan struct{}

	// Notify is called instead if it is not nil, with true if the request has its slot. The gate is locked then.
	Notify func(granted bool)

	name  // of its key
	key   *key
	began int64 // ns, when it got its slot
	state state
}

type state uint8

const (
	outside state = iota
	waits
	runs
)

// tell tells a request that has waited how that ended.
func (p *Place) tell(granted bool) {
	if p.Notify != nil {
		p.Notify(granted)
	} else {
		close(p.Ready)
	}
}

// Enter asks for a slot, and reports whether the request has it at once. Else it waits until its place is ready or until Leave.
// The key is a hash with a secret seed.
func (g *Gate) Enter(now int64, p *Place, id uint64, class int) (running bool) {
	defer g.at(now).mu.Unlock()
	g.fill()
	p.name = name{id, min(class, g.last)}
	g.see(p)
	g.forget()
	p.key = g.key(p.name)
	if len(p.key.waiting) == 0 && g.fits(p.key) {
		g.run(p)
	} else {
		g.wait(p)
	}
	return p.state == runs
}

// Leave takes a request that waits out of the queue. It reports whether the request has its slot, so that it does not wait.
func (g *Gate) Leave(now int64, p *Place) (running bool) {
	defer g.at(now).mu.Unlock()
	if p.state == waits {
		g.leave(p)
		g.fill()
	}
	return p.state == runs
}

// Refuse says why a request that has left or was refused gets no slot: with over, its key asks for more than twice its share
// of all that run and wait, and else the upstream is too slow. Its client should come back after so many seconds: 1, and a
// part up to the ratio of refusals to answers, so that clients return at the pace of the upstream, but at most 30. The random
// number is in [0, 1).
func (g *Gate) Refuse(now int64, p *Place, random float64) (over bool, after int64) {
	defer g.at(now).mu.Unlock()
	if k := g.keys[p.name]; k != nil {
		over = float64(k.running+len(k.waiting)) > 2*float64(g.running+g.waiting)/float64(len(g.keys)+1)
	}
	g.refusals = min(g.refusals+1.0/lately, lately) // so that an outage is soon forgotten
	return over, min(1+int64(random*(g.refusals+1)), 30)
}

// Done gives the slot of a request back. It does nothing if the request has none.
func (g *Gate) Done(now int64, p *Place, a Answer) {
	defer g.at(now).mu.Unlock()
	if p.state != runs {
		return
	}
	took := g.now - p.began
	g.limit.done(g.now, took, a)
	if a == Useful {
		g.seen.add(p.id)
		g.refusals -= g.refusals / lately
	}
	g.settle(p, took, a)
	g.forget()
	g.fill()
}

// Hold returns for how much longer a request has its slot whose client has left: until it has had the slot for as long as
// requests have it on average. Most upstreams work on, and do not tell. Call [Gate.Done] then.
func (g *Gate) Hold(now int64, p *Place) time.Duration {
	defer g.at(now).mu.Unlock()
	return time.Duration(max(int64(g.limit.times.mean)-(g.now-p.began), 0))
}

// at locks the gate at a time. Callers read their clock before they have the lock.
func (g *Gate) at(now int64) *Gate {
	g.mu.Lock()
	g.pass(max(g.now, now))
	return g
}
