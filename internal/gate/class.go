package gate

// class is the keys of one priority.
type class struct {
	weight           float64
	had              float64 // ns of slots, divided by the weight
	share            float64 // ns of slots that a key has had which always had its share
	running, waiting int
	ends             [Left + 1]End
	order            keyHeap // keys of which requests wait
	newcomers        *key    // all keys that were never served
}

func newClass(i int) class {
	return class{newcomers: &key{at: -1, class: int16(i), newcomers: true}}
}

// enroll makes a key wait for its turn. A key that has not waited has gained no credit by that, and a class neither.
func (q *Queue) enroll(c *class, k *key) {
	q.idle.remove(k)
	k.had = max(k.had, c.share)
	q.seq++
	k.seq = q.seq
	if len(c.order) == 0 {
		c.had = max(c.had, q.least())
	}
	c.order.push(k)
}

// least is the least that a class has had of which requests wait, 0 if there is none.
func (q *Queue) least() float64 {
	if c := q.first(); c != nil {
		return c.had
	}
	return 0
}

// first is the class whose turn it is, nil if nothing waits.
func (q *Queue) first() (c *class) {
	for i := range q.classes {
		if o := &q.classes[i]; len(o.order) > 0 && (c == nil || o.had < c.had) {
			c = o
		}
	}
	return c
}

// next takes the request whose turn it is out of the queue, and charges its key the time that its
// requests take on average.
func (q *Queue) next(now int64) *Place {
	c := q.first()
	k := c.order[0]
	p := k.oldest
	if now-q.busy > q.stands {
		p = k.newest
	}
	p.charged = k.took
	// As if all that wait were served at once, each at the same speed. So time goes on for those that
	// were served, even if new keys come all the time.
	c.share = max(k.had, c.share+p.charged/float64(len(c.order)+1))
	q.remove(p)
	q.charge(c, k, p.charged)
	k.running++
	p.key = k
	return p
}

// settle corrects what the key of a request was charged, once it is known how long its slot was taken.
func (q *Queue) settle(p *Place, took float64) {
	k := p.key
	k.running--
	k.took += (took - k.took) / 4
	q.charge(&q.classes[p.class], k, took-p.charged)
	p.key = nil
}

// charge charges a key and its class ns of slots.
func (q *Queue) charge(c *class, k *key, ns float64) {
	k.had = max(k.had+ns, 0)
	c.had += ns / c.weight
	if k.at >= 0 {
		c.order.fix(k)
	}
}
