package gate

import (
	"slices"
	"time"
)

// places is how many requests may wait, shared by the keys that wait. But each key may have as many
// waiting as the limit lets run.
const places = 1024

// lull is for how many ns no request has to wait before those that wait count as a new shortage.
const lull = 60e9

// pass lets time pass, in which requests ran and waited. Slots are charged to their classes. The share goes on as if all that wait
// were served at once, each at the same speed. So it goes on for those that were served, even if new keys come all the time.
func (g *Gate) pass(now int64) {
	if g.waiting > 0 {
		for _, c := range g.classes {
			slots := float64(now-g.now) * float64(c.Running)
			c.had += slots / c.weight
			c.share += slots / float64(len(c.order)+1)
		}
	}
	g.now = now
	g.limit.step(now, g.running, g.waiting)
}

// fill gives slots to those that are next.
func (g *Gate) fill() {
	for g.waiting > 0 {
		p := g.next()
		if p == nil {
			return
		}
		c := g.classes[p.class]
		g.served, c.share = max(g.served, c.had), max(c.share, p.key.had)
		g.remove(p)
		g.run(p)
		p.tell(true)
	}
}

// next returns the request whose turn it is, nil if none may run.
func (g *Gate) next() (p *Place) {
	var turn *class
	for _, c := range g.classes {
		if len(c.order) == 0 || turn != nil && turn.had <= c.had {
			continue
		}
		if first := g.first(c); g.fits(first.key) {
			turn, p = c, first
		}
	}
	return p
}

// first is the request of a class whose turn it is. Requests of newcomers whose key is known meanwhile wait for its turn.
func (g *Gate) first(c *class) *Place {
	for {
		k := c.order[0]
		p := k.waiting[0]
		if g.now-g.busy > g.stands {
			p = k.waiting[len(k.waiting)-1]
		}
		known := g.key(p.name)
		if k == known {
			return p
		}
		g.remove(p)
		g.push(known, p)
	}
}

// fits reports whether a key may have one more slot. Slots that other keys have beyond what it would have do not count, or
// beyond so many times that in a class of so many times the weight. So who has more keeps nobody waiting who has less. While
// several keys share the class or those before it, a key also leaves as many slots free as it has: what it takes cannot be
// taken back when others come.
func (g *Gate) fits(k *key) bool {
	c, free := g.classes[k.class], g.limit.n
	if g.running >= 2*free || g.most > 0 && g.running >= g.most {
		return false
	}
	if g.now-c.shared < lull && k != c.newcomers {
		free -= k.running
	}
	for _, o := range g.classes {
		free -= o.slots(float64(k.running+1) * max(o.weight/c.weight, 1))
	}
	return free > 0
}

// run gives a request a slot.
func (g *Gate) run(p *Place) {
	c, k := g.classes[p.class], p.key
	if k == c.newcomers { // its other requests are not
		g.add(p.name).guest = true
	}
	p.state, p.began = runs, g.now
	g.running++
	c.Running++
	if k.running == len(c.levels) {
		c.levels = append(c.levels, 0)
	}
	c.levels[k.running]++
	k.running++
	c.reorder(k)
}

// settle ends that, and charges the key the time that the slot was taken, if others wait for one.
func (g *Gate) settle(p *Place, took int64, a Answer) {
	c, k := g.classes[p.class], p.key
	if k == c.newcomers {
		g.keys[p.name].guest = false
	}
	p.state = outside
	g.running--
	c.Running--
	c.Ends[a]++
	c.Slots[a] += time.Duration(took)
	if g.waiting > 0 {
		k.had += float64(took)
	}
	k.running--
	c.levels[k.running]--
	c.reorder(k)
}

// wait puts a request at the end of those of its key, of which the oldest may have to make room.
func (g *Gate) wait(p *Place) {
	if g.waiting == 0 {
		g.busy = g.now
		if g.now-g.held > lull {
			g.tight = g.now
		}
	}
	g.held = g.now
	if k := p.key; len(k.waiting) >= max(g.limit.n, places/(len(g.classes[p.class].order)+1)) {
		oldest := k.waiting[0]
		g.leave(oldest)
		oldest.tell(false)
	}
	p.Ready = make(chan struct{})
	g.push(p.key, p)
}

// push makes a request wait with those of a key.
func (g *Gate) push(k *key, p *Place) {
	if len(k.waiting) == 0 {
		g.enroll(k)
	}
	k.waiting = append(k.waiting, p)
	p.key, p.state = k, waits
	g.classes[p.class].Waiting++
	g.waiting++
}

// leave takes a request out that gets no slot.
func (g *Gate) leave(p *Place) {
	g.remove(p)
	g.classes[p.class].Refused++
}

// remove takes a request out of those that wait.
func (g *Gate) remove(p *Place) {
	c, k := g.classes[p.class], p.key
	i := slices.Index(k.waiting, p)
	k.waiting = slices.Delete(k.waiting, i, i+1)
	p.state = outside
	c.Waiting--
	g.waiting--
	if len(k.waiting) == 0 {
		c.order.Remove(slices.Index(c.order, k))
	}
}

// enroll makes a key wait for its turn. A key that has not waited has gained nothing by that, and a class neither.
func (g *Gate) enroll(k *key) {
	c := g.classes[k.class]
	k.had = max(k.had, c.share)
	g.seq++
	k.seq = g.seq
	if len(c.order) == 0 {
		c.had = max(c.had, g.served)
	}
	c.order.Push(k)
}
