package gate

import (
	"container/heap"
	"math"
)

// class is the lines of one priority.
type class struct {
	weight           float64
	had              float64 // ns of slots, divided by the weight
	share            float64 // ns of slots that a key has had which always had its share
	running, waiting int
	ends             Ends
	order            lines  // in which requests wait
	newcomers        *line  // of all keys that were never served
	levels           []int  // how many keys of the class have more than so many requests that run
	latest           uint64 // key of a request, of this class or a more important one
	shared           int64  // ns, when the latest one was another one than that before
}

func newClass(i int) class {
	l := &line{key: &key{class: int16(i)}, class: int16(i), at: -1}
	l.key.lines = l
	return class{newcomers: l, shared: -lull}
}

// lines is a heap of lines for [container/heap]. Each line knows where it is, so that it can be moved.
type lines []*line

// before reports whether a line comes before another one: the fewest requests of its key run, of equal ones it has had the
// least, and then has waited longest.
func (l *line) before(other *line) bool {
	if l.key.running != other.key.running {
		return l.key.running < other.key.running
	}
	return l.had < other.had || l.had == other.had && l.seq < other.seq
}

func (l lines) Len() int           { return len(l) }
func (l lines) Less(i, j int) bool { return l[i].before(l[j]) }

func (l lines) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].at, l[j].at = int32(i), int32(j)
}

// Push is for container/heap.
func (l *lines) Push(x any) {
	x.(*line).at = int32(len(*l))
	*l = append(*l, x.(*line))
}

// Pop is for container/heap.
func (l *lines) Pop() any {
	n := len(*l) - 1
	last := (*l)[n]
	(*l)[n], *l = nil, (*l)[:n]
	last.at = -1
	return last
}

// see sees a request of a class, which counts for those that are less important, too.
func (q *Queue) see(now int64, p *Place) {
	for i := p.class; i <= q.last; i++ {
		c := &q.classes[i]
		if p.id != c.latest && c.latest != 0 {
			c.shared = now
		}
		c.latest = p.id
	}
}

// enroll makes a line wait for its turn. A key that has not waited has gained nothing by that, and a class neither.
func (q *Queue) enroll(l *line) {
	c := &q.classes[l.class]
	l.had = max(l.had, c.share)
	q.seq++
	l.seq = q.seq
	if len(c.order) == 0 && q.waiting > 0 {
		c.had = max(c.had, q.least())
	}
	heap.Push(&c.order, l)
}

// least is the least that a class has had of which requests wait.
func (q *Queue) least() float64 {
	least := math.Inf(1)
	for i := range q.classes {
		if c := &q.classes[i]; len(c.order) > 0 {
			least = min(least, c.had)
		}
	}
	return least
}

// next takes the request whose turn it is out of the queue. It returns nil if none may run.
func (q *Queue) next(now int64) *Place {
	var turn *class
	var p *Place
	for i := range q.classes {
		c := &q.classes[i]
		if len(c.order) == 0 || turn != nil && turn.had <= c.had {
			continue
		}
		if first := q.first(c, now); q.fits(first.line.key, c, now) {
			turn, p = c, first
		}
	}
	if p != nil {
		turn.share = max(turn.share, p.line.had)
		q.remove(p)
	}
	return p
}

// first is the request of a class whose turn it is. Requests of newcomers whose key is known meanwhile go to its line.
func (q *Queue) first(c *class, now int64) *Place {
	for {
		l := c.order[0]
		p := l.requests[0]
		if now-q.busy > q.stands {
			p = l.requests[len(l.requests)-1]
		}
		k := q.keys[p.id]
		if l != c.newcomers || k == nil {
			return p
		}
		q.remove(p)
		q.push(q.line(k, p.class), p)
	}
}

// fits reports whether a key may have one more slot. Slots that other keys have beyond what it would have do not count, or
// beyond so many times that in a class of so many times the weight. So who has more keeps nobody waiting who has less. While
// several keys share the class or those before it, a key also leaves as many slots free as it has: what it takes cannot be
// taken back when others come.
func (q *Queue) fits(k *key, c *class, now int64) bool {
	n, running := q.limit.N(), int(k.running)
	if q.running >= 2*n || q.most > 0 && q.running >= q.most {
		return false
	}
	if now-c.shared < lull && k != c.newcomers.key {
		n -= running
	}
	for i := range q.classes {
		o := &q.classes[i]
		levels := min((running+1)*max(int(o.weight/c.weight), 1), len(o.levels))
		for _, keys := range o.levels[:levels] {
			n -= keys
		}
	}
	return n > 0
}

// count counts a request that runs for its key.
func (q *Queue) count(p *Place) {
	k := q.key(p)
	if k == q.classes[p.class].newcomers.key {
		q.remember(&key{id: p.id, guest: true})
	}
	q.level(k, -1)
	k.class = p.class
	q.move(k, 1)
	q.level(k, 1)
	p.key = k
}

// level counts a key in its class, or takes it out.
func (q *Queue) level(k *key, by int) {
	c := &q.classes[k.class]
	for len(c.levels) < int(k.running) {
		c.levels = append(c.levels, 0)
	}
	for i := range k.running {
		c.levels[i] += by
	}
}

// settle ends that, and charges the key the time that the slot was taken, if others wait for one.
func (q *Queue) settle(p *Place, took float64) {
	k := p.key
	p.key = nil
	if q.waiting > 0 {
		for l := k.lines; l != nil; l = l.next {
			l.had += took
		}
	}
	q.move(k, -1)
	q.classes[k.class].levels[k.running]--
	if k == q.classes[p.class].newcomers.key {
		k = q.keys[p.id]
		k.guest = false
	}
	q.rest(k)
}

// move changes how many requests of a key run, and with that the order of its lines.
func (q *Queue) move(k *key, by int32) {
	k.running += by
	for l := k.lines; l != nil; l = l.next {
		if l.at >= 0 {
			heap.Fix(&q.classes[l.class].order, int(l.at))
		}
	}
}

// pass lets time pass, in which requests ran and waited. Slots are charged to their classes. The share goes on as if all that wait
// were served at once, each at the same speed. So it goes on for those that were served, even if new keys come all the time.
func (q *Queue) pass(now int64) {
	if q.waiting > 0 {
		for i := range q.classes {
			c := &q.classes[i]
			slots := float64(now-q.now) * float64(c.running)
			c.had += slots / c.weight
			c.share += slots / float64(len(c.order)+1)
		}
	}
	q.now = now
	q.limit.Step(now, q.running, q.waiting)
}
