package world

import (
	"cmp"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/heap"
)

// network carries out what is due, in one goroutine, one after the other. What is due at the same instant has an
// order by what it is, so that no race of goroutines decides. Time moves on between any two, so what one of them has
// goroutines do is done when the next one comes. Only what looks the same happens at one instant, and has no order.
type network struct {
	seed  uint64
	began time.Time
	wake  chan struct{}
	done  chan struct{}

	mu   sync.Mutex
	due  heap.Heap[due]
	asks uint64 // how often something was asked for
}

// due is something to do at a time.
type due struct {
	at    time.Duration
	order uint64
	asked uint64 // its number
	do    func()
}

// Before implements [heap.Heap].
func (d due) Before(other due) bool {
	return cmp.Or(cmp.Compare(d.at, other.at), cmp.Compare(d.order, other.order), cmp.Compare(d.asked, other.asked)) < 0
}

func newNetwork(seed uint64) *network {
	n := &network{seed: seed, began: time.Now(), wake: make(chan struct{}, 1), done: make(chan struct{})}
	go n.run()
	return n
}

// now is the time since the world began.
func (n *network) now() time.Duration { return time.Since(n.began) }

// at has something done at a time. It is not carried out before all goroutines wait that run now.
func (n *network) at(when time.Duration, order uint64, do func()) {
	n.mu.Lock()
	n.asks++
	n.due.Push(due{even(max(when, n.now()+1)), order, n.asks, do})
	first := n.due[0].asked == n.asks
	n.mu.Unlock()
	if !first {
		return
	}
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// even returns a time of the network, which is an even number of nanoseconds: those of watches are odd, so that of two that come in a
// row neither falls on the other.
func even(t time.Duration) time.Duration { return t + t&1 }

// wait returns at a time, in the order that others have who wait for the same one.
func (n *network) wait(until time.Duration, order uint64) {
	done := make(chan struct{})
	n.at(until, order, func() { close(done) })
	<-done
}

func (n *network) close() { close(n.done) }

// next takes what is to be done now, or returns in what time that is. Time moves on after the last that was done, unless both
// look the same.
func (n *network) next(last due) (d due, wait time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.due) == 0 {
		return due{}, time.Hour
	}
	now, at := n.now(), n.due[0].at
	if n.due[0].order != last.order {
		at = max(at, even(last.at+1))
	}
	if at > now {
		return due{}, at - now
	}
	d = n.due.Pop()
	d.at = now
	return d, 0
}

func (n *network) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for last := (due{at: -1}); ; {
		d, wait := n.next(last)
		if d.do != nil {
			last = d
			runtime.Gosched() // begins a new time slice
			d.do()
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-n.wake:
		case <-n.done:
			return
		}
	}
}

// draw returns a number that depends on the seed, the time, and what it is for, and on nothing else: not on the order
// in which numbers are drawn. So a world from which an operation was taken is like the one before.
func (n *network) draw(about string, which ...uint64) uint64 {
	d := dice(fnvOffset).number(n.seed).number(uint64(n.now())).text(about)
	for _, number := range which {
		d = d.number(number)
	}
	return d.roll()
}

// dice is the hash FNV-1a of what a number is drawn for. That of package hash/fnv allocates.
type dice uint64

const fnvOffset, fnvPrime = 14695981039346656037, 1099511628211

func (d dice) number(v uint64) dice {
	for ; ; v >>= 8 {
		if d = (d ^ dice(v&0xff)) * fnvPrime; v == 0 {
			return d
		}
	}
}

func (d dice) text(s string) dice {
	for i := range len(s) {
		d = (d ^ dice(s[i])) * fnvPrime
	}
	return d
}

// roll returns a number for all of it. The low bits of the hash are poor.
func (d dice) roll() uint64 {
	v := uint64(d)
	v ^= v >> 33
	v *= 0xff51afd7ed558ccd
	return v ^ v>>33
}

// between makes a time of a drawn number.
func between(v uint64, least, most time.Duration) time.Duration {
	return least + time.Duration(v%uint64(most-least+1))
}

// bag is a number for some bytes that is the same for all their orders: what a map has put in another order is the
// same message.
func bag(b []byte) uint64 {
	v := uint64(len(b))
	for _, c := range b {
		v += marbles[c]
	}
	return v
}

var marbles = func() (all [256]uint64) {
	for c := range all {
		all[c] = dice(fnvOffset).number(uint64(c)).roll()
	}
	return all
}()

// message is who sends what to Redis, and when. What it meets follows from that, and what its reply meets follows from
// it too. So nothing of it changes if something is taken from the plan, unless it is sent at another time.
type message uint64

// fate is a number for what a message meets.
func (m message) fate(about string) uint64 { return dice(m).text(about).roll() }

// way is how long a message takes, or its reply.
func (w *world) way(c *conn, m message, direction string) time.Duration {
	d := 100 * time.Microsecond
	if !w.plan.Even {
		d = between(m.fate(direction), 20*time.Microsecond, 200*time.Microsecond)
	}
	if late := w.meets(Delay, c.in.number); late != nil && late.Surely {
		d += 3 * timeout / 2
	} else if late != nil {
		d += between(m.fate("late "+direction), 0, cmp.Or(late.After, 2*timeout))
	}
	return d
}

// loses reports whether a message gets lost, or its reply.
func (w *world) loses(c *conn, m message, kind Kind) bool {
	e := w.meets(kind, c.in.number)
	return e != nil && (e.Surely || m.fate(string(kind))%2 == 0)
}

// sends has bytes go from an instance to its host. The connection is locked.
func (w *world) sends(c *conn, b []byte) {
	if c.role == 0 {
		c.role = role() // which go-redis dials for, in another goroutine
	}
	what := bag(b)
	m := message(w.net.draw("message", uint64(c.in.number), c.role, what, c.to))
	c.said, c.lastOut = what, even(max(c.lastOut+1, w.net.now()+w.way(c, m, "to")))
	lost := w.loses(c, m, LoseRequests)
	w.net.at(c.lastOut, what+c.sender(), func() {
		if lost {
			w.history.note(w.net.now(), fmt.Sprintf("lost: what instance %d sends", c.in.number))
			c.reset()
		} else {
			c.message = m
			c.host.receive(c, b)
		}
	})
}

// replies has a reply go back to what has come last.
func (w *world) replies(c *conn, b []byte) {
	c.lastIn = even(max(c.lastIn+1, w.net.now()+service+w.way(c, c.message, "from")))
	lost := w.loses(c, c.message, LoseReplies)
	w.net.at(c.lastIn, bag(b)+c.sender(), func() {
		if lost {
			w.history.note(w.net.now(), fmt.Sprintf("lost: the reply to instance %d", c.in.number))
			c.reset()
		} else {
			c.arrive(b)
		}
	})
}
