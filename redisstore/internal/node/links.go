package node

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// links are connections that calls use without the pool of go-redis, which looks at each connection
// before each use, and at its limits. A call that finds none free makes one.
//
// If Redis is far, a call has no time for that: dialing, TLS, logging in and the call itself take
// more time than a decision has. So then these connections are made in the background, and there are
// no more calls at once than links.
type links struct {
	count  atomic.Int32 // including those in use
	making sync.Mutex

	mu   sync.Mutex
	free []*redis.Conn // the most recently used last
}

// conn is a connection, or the pool.
type conn interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipelined(ctx context.Context, fn func(redis.Pipeliner) error) ([]redis.Cmder, error)
}

// get takes a link that is free, if there is one.
func (l *links) get() *redis.Conn {
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

// all takes the links that are free.
func (l *links) all() []*redis.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.free
	l.free = nil
	return all
}

// add counts another link unless there are so many. It reports whether it has.
func (l *links) add(most int) bool {
	if int(l.count.Add(1)) <= most {
		return true
	}
	l.count.Add(-1)
	return false
}

// use sends something over a link, or over the pool if there can be no more links. If Redis has closed
// the connection meanwhile, it takes another one: others may be closed, too, and the last one is new.
func (n *Node) use(ctx context.Context, send func(context.Context, conn) error) (err error) {
	if n.closed.Load() {
		return send(ctx, n.client) // which says so
	}
	for link := n.links.get(); link != nil; link = n.links.get() {
		err = send(ctx, link)
		n.heed(err)
		n.unlink(link, err)
		if !errors.Is(err, errIdle) {
			return err
		}
	}
	ctx, cancel := n.unconnected(ctx)
	defer cancel()
	for range n.client.Options().PoolSize + 1 {
		if !n.batcher.remote() && n.links.add(n.mostLinks()) {
			link := n.client.Conn()
			err = send(ctx, link)
			n.heed(err)
			if err == nil {
				n.links.put(link)
			} else { // it may not have logged in
				n.links.drop(link, false)
			}
		} else {
			err = send(ctx, n.client)
			n.heed(err)
		}
		if !errors.Is(err, errIdle) {
			break
		}
	}
	if err != nil {
		err = unsentIn(ctx, err)
	}
	return err
}

func (l *links) put(link *redis.Conn) {
	l.mu.Lock()
	l.free = append(l.free, link)
	l.mu.Unlock()
}

// drop closes a link, and the others too if they are most likely as broken.
func (l *links) drop(link *redis.Conn, all bool) {
	_ = link.Close()
	dropped := 1
	l.mu.Lock()
	if all {
		for _, other := range l.free {
			_ = other.Close()
		}
		dropped += len(l.free)
		l.free = nil
	}
	l.mu.Unlock()
	l.count.Add(int32(-dropped))
}

// mostLinks is how many links there should be: one for each call and one for other commands, but half
// of the pool is left to calls that find no link free.
func (n *Node) mostLinks() int { return min(maxCalls+1, n.client.Options().PoolSize/2) }

// missing is how many links should be made.
func (n *Node) missing() int {
	if !n.batcher.remote() {
		return 0
	}
	return max(0, n.mostLinks()-int(n.links.count.Load()))
}

// link makes the links that are missing, unless they are being made.
func (n *Node) link() {
	if !n.links.making.TryLock() {
		return
	}
	defer n.links.making.Unlock()
	var all sync.WaitGroup
	for range n.missing() {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
			defer cancel()
			link := n.client.Conn()
			if err := n.ping(ctx, link); !replied(err) {
				_ = link.Close()
				return
			}
			n.links.count.Add(1)
			n.links.put(link)
		})
	}
	all.Wait()
}

// ping uses a connection, measures the distance, and looks at the clock of Redis.
func (n *Node) ping(ctx context.Context, c conn) error {
	_, took, err := n.askTime(func(cmd redis.Cmder) error { return c.Process(ctx, cmd) })
	if replied(err) {
		n.distance.measure(took)
	}
	return err
}

// unlink ends the use of a link. If go-redis could not log in, or has given the connection up for what
// Redis said, it wraps that error.
func (n *Node) unlink(link *redis.Conn, err error) {
	if _, said := err.(redis.Error); err == nil || said && !redis.IsReadOnlyError(err) { // see above
		n.links.put(link)
		return
	}
	n.links.drop(link, !replied(err) && Failure(err) != store.FailureTimeout)
	if !errors.Is(err, errIdle) || n.missing() > 0 {
		n.Connect()
	}
}

// Tend uses each free link, so that no link is closed for being idle, and makes the links that
// are missing.
func (n *Node) Tend() {
	for _, link := range n.links.all() {
		ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
		err := n.ping(ctx, link)
		cancel()
		n.unlink(link, err)
	}
	if n.missing() > 0 {
		n.Connect()
	}
}
