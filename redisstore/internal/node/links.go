package node

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// links are the connections to a Redis. They take the place of the pool of go-redis, which looks at each connection
// before each use, and at its limits. A call that finds none free makes one.
//
// If Redis is far, a call has no time for that: dialing, TLS, logging in and the call itself take
// more time than a decision has. So then these connections are made in the background, and there are
// no more calls at once than links.
//
// An address may lead to another server than before: a name or a virtual address follows the master. Links that were
// made before still lead to the old one, and each would cost a call to find that out. So if Redis says on one that it
// is not the master, no link is used any more that was made before.
type links struct {
	used  chan struct{} // has an element for each link that is in use
	count atomic.Int32  // including those in use, without those that are being made

	mu    sync.Mutex
	free  []*link   // the most recently used last
	since time.Time // only those are used that were made later
}

// link is a connection.
type link struct {
	*redis.Conn
	made time.Time // when its making was begun
	up   bool      // it was used
}

// get takes a link that is free, if there is one.
func (l *links) get() *link {
	select {
	case l.used <- struct{}{}:
	default:
		return nil
	}
	if link := l.pop(); link != nil {
		return link
	}
	<-l.used
	return nil
}

func (l *links) pop() *link {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := len(l.free) - 1
	if last < 0 {
		return nil
	}
	link := l.free[last]
	l.free = l.free[:last]
	return link
}

// put ends the use of a link. Others may use it if it is well.
func (l *links) put(link *link, well bool) {
	l.mu.Lock()
	if well = well && link.made.After(l.since); well {
		if !link.up { // before others have it
			link.up = true
			l.count.Add(1)
		}
		l.free = append(l.free, link)
	}
	l.mu.Unlock()
	if !well {
		_ = link.Close()
		if link.up {
			l.count.Add(-1)
		}
	}
	<-l.used
}

// clear closes the links that are free.
func (l *links) clear() {
	for _, link := range l.free {
		_ = link.Close()
	}
	l.count.Add(int32(-len(l.free)))
	l.free = nil
}

// trustTime is for how long links are trusted at least since others were given up: a server that stays a replica
// would have each call make a new one.
const trustTime = 100 * time.Millisecond

// distrust has links no longer used that were made by now. It does nothing soon after it has done so.
func (l *links) distrust() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.since) >= trustTime {
		l.since = now
		l.clear()
	}
}

// heed looks whether an error says that the server is not the master, or not any more.
func (n *Node) heed(err error) {
	if read(err).Demoted() {
		n.links.distrust()
	}
}

// use sends something over a link. If Redis has closed the connection meanwhile, it takes another one: others may be
// closed, too, and the last one is new.
func (n *Node) use(ctx context.Context, send func(context.Context, *redis.Conn) error) error {
	if n.closed.Load() {
		return n.unlinked(ctx, send)
	}
	for link := n.links.get(); link != nil; link = n.links.get() {
		if err := n.over(link, send(ctx, link.Conn)); !errors.Is(err, errIdle) {
			return err
		}
	}
	ctx, cancel := n.unconnected(ctx)
	defer cancel()
	for {
		select {
		case n.links.used <- struct{}{}:
		case <-ctx.Done():
			return n.unlinked(ctx, send)
		}
		link := n.links.pop()
		if link == nil {
			link = n.newLink()
		}
		made := !link.up
		if err := n.over(link, send(ctx, link.Conn)); made || !errors.Is(err, errIdle) {
			return unsentIn(ctx, err)
		}
	}
}

func (n *Node) newLink() *link { return &link{Conn: n.client.Conn(), made: time.Now()} }

// unlinked has what would be sent get the error that there is no connection, from go-redis.
func (n *Node) unlinked(ctx context.Context, send func(context.Context, *redis.Conn) error) error {
	none := n.client.Conn()
	defer none.Close()
	return unsentIn(ctx, send(ctx, none))
}

// over ends the use of a link. If go-redis could not log in, or has given the connection up for what Redis said, it wraps
// that error. The others are most likely as broken.
func (n *Node) over(link *link, err error) error {
	n.heed(err)
	_, said := err.(redis.Error) // see above
	up := link.up                // or else it may not have logged in
	well := err == nil || said && up && !redis.IsReadOnlyError(err)
	if n.links.put(link, well); well || !up {
		return err
	}
	if !replied(err) && Failure(err) != store.FailureTimeout {
		n.links.mu.Lock()
		n.links.clear()
		n.links.mu.Unlock()
	}
	if !errors.Is(err, errIdle) || n.batcher.remote() {
		n.Connect()
	}
	return err
}

// ping uses a connection, measures the distance, and looks at the clock of Redis.
func (n *Node) ping(ctx context.Context, c *redis.Conn) error {
	_, took, err := askTime(func(cmd redis.Cmder) error { return c.Process(ctx, cmd) })
	if replied(err) {
		n.distance.measure(took)
	}
	return err
}

// Tend looks how far Redis is. If it is far, Tend uses as many links at once as calls need, and one for other commands:
// so those that are missing are made, and none is closed for being idle.
func (n *Node) Tend() {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	if err := n.use(ctx, n.ping); !replied(err) || !n.batcher.remote() {
		return
	}
	var all sync.WaitGroup
	for range min(maxCalls+1, cap(n.links.used)) {
		all.Go(func() { _ = n.use(ctx, n.ping) })
	}
	all.Wait()
}

// forgetting is the part of the difference by which a longer call moves the distance.
const forgetting = 32

// distance is how long a call takes that nothing delays: about the shortest time of late.
// One call that nothing delayed is enough to know it, and a busy machine or a long script
// changes it little. It follows a Redis that has moved away within some dozens of calls.
type distance struct{ nanos atomic.Int64 }

// is returns the distance, 0 if nothing has been measured.
func (d *distance) is() time.Duration { return time.Duration(d.nanos.Load()) }

// measure takes note of a call that was answered. Two calls that do so at once may lose
// one of their measurements.
func (d *distance) measure(took time.Duration) {
	known := d.is()
	if known > 0 && took > known {
		took = known + (took-known)/forgetting
	}
	d.nanos.Store(int64(max(took, 1)))
}

// remote reports whether the making of a connection may take too much of a decision's time.
func (b *batcher) remote() bool { return 8*b.trip.is() > b.timeout }
