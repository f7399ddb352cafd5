package world

import (
	"container/heap"
	"hash/fnv"
	"sync"
	"time"
)

// network carries out what is due, in one goroutine, one after the other. What is due at the same instant has an
// order by what it is, so that no race of goroutines decides.
type network struct {
	seed  uint64
	began time.Time
	wake  chan struct{}
	done  chan struct{}

	mu  sync.Mutex
	due dues
}

// due is something to do at a time.
type due struct {
	at    time.Duration
	order uint64
	do    func()
}

type dues []due

func (d dues) Len() int { return len(d) }
func (d dues) Less(i, j int) bool {
	return d[i].at < d[j].at || d[i].at == d[j].at && d[i].order < d[j].order
}
func (d dues) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *dues) Push(x any)   { *d = append(*d, x.(due)) }
func (d *dues) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
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
	heap.Push(&n.due, due{max(when, n.now()+1), order, do})
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

func (n *network) close() { close(n.done) }

func (n *network) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		n.mu.Lock()
		wait := time.Hour
		var do func()
		if len(n.due) > 0 {
			if wait = n.due[0].at - n.now(); wait <= 0 {
				do = heap.Pop(&n.due).(due).do
			}
		}
		n.mu.Unlock()
		if do != nil {
			do()
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
func (n *network) draw(about ...any) uint64 { return draw(n.seed, n.now(), about) }

func draw(seed uint64, now time.Duration, about []any) uint64 {
	h := fnv.New64a()
	number := func(v uint64) {
		for ; ; v >>= 8 {
			_, _ = h.Write([]byte{byte(v)})
			if v == 0 {
				return
			}
		}
	}
	number(seed)
	number(uint64(now))
	for _, a := range about {
		switch a := a.(type) {
		case string:
			_, _ = h.Write([]byte(a))
		case int:
			number(uint64(a))
		case uint64:
			number(a)
		}
	}
	v := h.Sum64() // fnv's low bits are poor
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
		all[c] = draw(uint64(c), 0, nil)
	}
	return all
}()
