package gate

import "time"

// Limiter says how many requests may run.
type Limiter interface {
	// N is how many requests may run, at least 1.
	N() int

	// Step is called before and after each change: so many run and wait since now, in ns.
	Step(now int64, running, waiting int)

	// Done is called when a request that ran for took ns is over.
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
	idle             keyList // keys of which no request waits, longest idle first
	seen             seen
	pace             pace
	busy             int64  // ns, since when the queue was never empty
	tight            int64  // ns, since when requests have had to wait again and again
	held             int64  // ns, when the last one that has to wait came
	seq              uint64 // counts keys that begin to wait
}

// places is how many requests may wait, shared by the keys that wait. But each key may have as many
// waiting as the limit lets run.
const places = 1024

// lull is for how many ns no request has to wait before those that wait count as a new shortage.
const lull = 60e9

// NewQueue returns an empty queue.
func NewQueue(l Limiter, o Options) *Queue {
	q := &Queue{}
	q.init(l, o)
	return q
}

func (q *Queue) init(l Limiter, o Options) {
	q.limit = l
	q.keys = make(map[uint64]*key)
	q.configure(o)
}

// configure makes the classes. Those that remain keep what they have had.
func (q *Queue) configure(o Options) {
	q.stands = int64(o.MaxWait / 2)
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

// Running returns how many requests have a slot.
func (q *Queue) Running() int { return q.running }

// Waiting returns how many requests wait.
func (q *Queue) Waiting() int { return q.waiting }

// Keys returns how many keys have a state.
func (q *Queue) Keys() int { return len(q.keys) }

// Arrive reports whether a request may run at once. Else it waits, until its Notify is called, or Leave.
func (q *Queue) Arrive(now int64, p *Place, id uint64, class int) bool {
	p.id, p.class, p.key = id, min(int16(class), q.last), nil
	q.advance(now)
	if q.waiting == 0 && q.running < q.limit.N() {
		q.run(now, p)
	} else {
		q.wait(now, p)
	}
	q.limit.Step(now, q.running, q.waiting)
	return p.state == runs
}

// Leave takes a waiting request out. It reports false if the request does not wait.
func (q *Queue) Leave(now int64, p *Place) bool {
	if p.state != waits {
		return false
	}
	q.remove(p)
	q.advance(now)
	q.limit.Step(now, q.running, q.waiting)
	return true
}

// Done gives the slot of a request back, and returns for how many ns the request had it. It does nothing if the
// request has none.
func (q *Queue) Done(now int64, p *Place, a Answer) int64 {
	if p.state != runs {
		return 0
	}
	took := now - p.began
	q.limit.Step(now, q.running, q.waiting)
	q.limit.Done(now, took, a)
	p.state = outside
	q.running--
	c := &q.classes[p.class]
	c.running--
	c.ends[a].Count++
	c.ends[a].Slots += time.Duration(took)
	if a == Useful {
		q.seen.add(now, p.id)
		q.pace.answered(now)
	}
	if p.key != nil {
		q.settle(p, float64(took))
	}
	q.forget()
	q.fill(now)
	q.limit.Step(now, q.running, q.waiting)
	return took
}

// advance lets the limit see the time. If it has risen, waiting requests may run.
func (q *Queue) advance(now int64) {
	q.limit.Step(now, q.running, q.waiting)
	q.fill(now)
}

// fill gives slots to those that are next.
func (q *Queue) fill(now int64) {
	for q.waiting > 0 && q.running < q.limit.N() {
		p := q.next(now)
		q.run(now, p)
		p.Notify(true)
	}
}

func (q *Queue) run(now int64, p *Place) {
	p.state, p.began = runs, now
	q.running++
	q.classes[p.class].running++
}

// wait puts a request at the end of the queue of its key.
func (q *Queue) wait(now int64, p *Place) {
	if q.waiting == 0 {
		q.busy = now
		if q.held == 0 || now-q.held > lull {
			q.tight = now
		}
	}
	q.held = now
	k := q.key(p)
	c := &q.classes[p.class]
	if int(k.waiting) >= max(q.limit.N(), places/(len(c.order)+1)) {
		oldest := k.oldest
		q.remove(oldest)
		oldest.Notify(false)
	}
	k.push(p)
	p.state = waits
	c.waiting++
	q.waiting++
	if k.at < 0 {
		q.enroll(c, k)
	}
}

// remove takes a request out of the queue of its key.
func (q *Queue) remove(p *Place) {
	k := p.key
	c := &q.classes[p.class]
	k.remove(p)
	p.key, p.state = nil, outside
	c.waiting--
	q.waiting--
	if k.waiting == 0 {
		c.order.remove(k)
		if !k.newcomers {
			q.idle.push(k)
		}
	}
}

// over reports whether the key of a request asks for more than twice its share.
func (q *Queue) over(p *Place) bool {
	k := q.keys[p.id]
	return k != nil && float64(k.running+k.waiting) > 2*float64(q.running+q.waiting)/float64(len(q.keys)+1)
}
