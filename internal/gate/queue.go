package gate

import (
	"container/heap"
	"slices"
	"time"
)

// Limiter says how many requests may run.
type Limiter interface {
	// N is how many requests may run, at least 1.
	N() int

	// Step is called before each change: so many ran and waited since the call before, until now, in ns.
	Step(now int64, running, waiting int)

	// Done is called after that when a request that ran for took ns is over.
	Done(now, took int64, a Answer)

	// Latency is the mean time of a request in ns, 0 if there was none.
	Latency() float64
}

// Queue decides who runs, who waits, and who is next. It is not safe for concurrent use.
type Queue struct {
	limit            Limiter
	stands           int64 // ns after which a queue that was never empty stands
	running, waiting int
	classes          []class
	last             int16 // the class of requests without a priority
	keys             map[uint64]*key
	all              []*key   // the same keys
	hand             int      // which of them may be forgotten next
	loose            []*Place // requests that run and are not counted for their keys
	most             int      // requests that may ever run, 0 for no bound
	seen             seen
	pace             pace
	busy             int64  // ns, since when the queue was never empty
	tight            int64  // ns, since when requests have had to wait again and again
	held             int64  // ns, when the last one that has to wait came
	seq              uint64 // counts lines that begin to wait
	now              int64  // ns, of the latest event
}

// places is how many requests may wait, shared by the keys that wait. But each key may have as many
// waiting as the limit lets run.
const places = 1024

// lull is for how many ns no request has to wait before those that wait count as a new shortage.
const lull = 60e9

// NewQueue returns an empty queue.
func NewQueue(l Limiter, o Options) *Queue {
	q := &Queue{limit: l, keys: make(map[uint64]*key)}
	q.configure(o)
	return q
}

// configure makes the classes. Those that remain keep what they have had.
func (q *Queue) configure(o Options) {
	q.stands, q.most = int64(o.MaxWait/2), o.Max
	weights := o.Weights
	if len(weights) == 0 {
		weights = []float64{1}
	}
	for i, w := range weights {
		if i == len(q.classes) {
			q.classes = append(q.classes, newClass(i))
		}
		q.classes[i].weight = w
	}
	q.last = int16(len(weights) - 1)
}

// Arrive reports whether a request may run at once. Else it waits, until its Notify is called, or Leave.
func (q *Queue) Arrive(now int64, p *Place, id uint64, class int) bool {
	p.id, p.class = id, min(int16(class), q.last)
	q.advance(now)
	q.see(now, p)
	if q.waiting == 0 && 2*q.running < q.limit.N() { // any key may have a slot
		p.loose = len(q.loose)
		q.loose = append(q.loose, p)
		q.run(now, p)
	} else {
		q.enter(now, p)
	}
	return p.state == runs
}

// enter lets a request run, or wait if its key may not have a slot or has others that wait.
func (q *Queue) enter(now int64, p *Place) {
	for _, runs := range q.loose {
		q.count(runs)
	}
	clear(q.loose)
	q.loose = q.loose[:0]
	q.forget()
	if k := q.key(p); k.waiting == 0 && q.fits(k, &q.classes[p.class], now) {
		q.count(p)
		q.run(now, p)
	} else {
		q.wait(now, p)
	}
}

// Leave takes a waiting request out. It reports false if the request does not wait.
func (q *Queue) Leave(now int64, p *Place) bool {
	if p.state != waits {
		return false
	}
	q.pass(now)
	k := p.line.key
	q.remove(p)
	q.rest(k)
	q.fill(now)
	return true
}

// Done gives the slot of a request back. It does nothing if the request has none.
func (q *Queue) Done(now int64, p *Place, a Answer) {
	if p.state != runs {
		return
	}
	took := now - p.began
	q.pass(now)
	q.limit.Done(now, took, a)
	p.state = outside
	q.running--
	c := &q.classes[p.class]
	c.running--
	c.ends[a].Count++
	c.ends[a].Slots += time.Duration(took)
	if a == Useful {
		q.seen.add(p.id)
		q.pace.add(now, 1, 0)
	}
	if p.key != nil {
		q.settle(p, float64(took))
	} else {
		last := len(q.loose) - 1
		q.loose[p.loose], q.loose[last].loose = q.loose[last], p.loose
		q.loose[last], q.loose = nil, q.loose[:last]
	}
	q.forget()
	q.fill(now)
}

// Hold returns for how many ns longer a request has its slot whose client has left: until it has had the slot for as long
// as requests have it on average. Most upstreams work on, and do not tell.
func (q *Queue) Hold(now int64, p *Place) int64 {
	return max(int64(q.limit.Latency())-(now-p.began), 0)
}

// advance lets time pass. If the limit has risen, waiting requests may run.
func (q *Queue) advance(now int64) {
	q.pass(now)
	q.fill(now)
}

// fill gives slots to those that are next.
func (q *Queue) fill(now int64) {
	for q.waiting > 0 {
		p := q.next(now)
		if p == nil {
			return
		}
		q.count(p)
		q.run(now, p)
		p.Notify(true)
	}
}

func (q *Queue) run(now int64, p *Place) {
	p.state, p.began = runs, now
	q.running++
	q.classes[p.class].running++
}

// wait puts a request at the end of its line.
func (q *Queue) wait(now int64, p *Place) {
	if q.waiting == 0 {
		q.busy = now
		if q.held == 0 || now-q.held > lull {
			q.tight = now
		}
	}
	q.held = now
	l := q.line(q.key(p), p.class)
	if len(l.requests) >= max(q.limit.N(), places/(len(q.classes[p.class].order)+1)) {
		oldest := l.requests[0]
		q.remove(oldest)
		oldest.Notify(false)
	}
	q.push(l, p)
}

// push puts a request at the end of a line.
func (q *Queue) push(l *line, p *Place) {
	if len(l.requests) == 0 {
		q.enroll(l)
	}
	l.requests = append(l.requests, p)
	p.line, p.state = l, waits
	l.key.waiting++
	q.classes[p.class].waiting++
	q.waiting++
}

// remove takes a request out of its line.
func (q *Queue) remove(p *Place) {
	l, c := p.line, &q.classes[p.class]
	i := slices.Index(l.requests, p)
	l.requests = slices.Delete(l.requests, i, i+1)
	p.line, p.state = nil, outside
	l.key.waiting--
	c.waiting--
	q.waiting--
	if len(l.requests) == 0 {
		heap.Remove(&c.order, int(l.at))
	}
}

// over reports whether the key of a request asks for more than twice its share.
func (q *Queue) over(p *Place) bool {
	k := q.keys[p.id]
	return k != nil && float64(k.running+k.waiting) > 2*float64(q.running+q.waiting)/float64(len(q.keys)+1)
}
