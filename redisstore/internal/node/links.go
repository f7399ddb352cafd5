package node

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// links are connections to a Redis that is far. The pool of go-redis makes a connection when a
// call finds none free, on that call's time, and from afar dialing, TLS, logging in and the
// call itself take more time than a decision has. So these connections are made in the
// background, and there are no more calls at once than links.
type links struct {
	count  atomic.Int32 // including those in use
	making sync.Mutex

	mu   sync.Mutex
	free []*redis.Conn // the least recently used first
}

// conn is a connection, or the pool.
type conn interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipelined(ctx context.Context, fn func(redis.Pipeliner) error) ([]redis.Cmder, error)
}

// get takes a link that is free, if there is one.
func (l *links) get() *redis.Conn {
	if l.count.Load() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.free) == 0 {
		return nil
	}
	link := l.free[0]
	l.free = l.free[:copy(l.free, l.free[1:])]
	return link
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

// missing is how many links should be made: there should be one for each call and one for
// other commands, but half of the pool is left to calls that find no link free.
func (n *Node) missing() int {
	if !n.batcher.remote() {
		return 0
	}
	return max(0, min(maxCalls+1, n.client.Options().PoolSize/2)-int(n.links.count.Load()))
}

// link makes the links that are missing.
func (n *Node) link() {
	n.links.making.Lock()
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

// ping uses a connection, and measures the distance.
func (n *Node) ping(ctx context.Context, c conn) error {
	begun := time.Now()
	err := c.Process(ctx, redis.NewStatusCmd(ctx, "ping"))
	if replied(err) {
		n.distance.measure(time.Since(begun))
	}
	return err
}

// unlink ends the use of a link.
func (n *Node) unlink(link *redis.Conn, err error) {
	if replied(err) && !redis.IsReadOnlyError(err) { // go-redis closes the latter's
		n.links.put(link)
		return
	}
	n.links.drop(link, Failure(err) != store.FailureTimeout)
	n.Connect()
}

// Tend uses each free link, so that no link is closed for being idle, and makes the links that
// are missing.
func (n *Node) Tend() {
	for range n.links.count.Load() {
		link := n.links.get()
		if link == nil {
			break
		}
		ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
		err := n.ping(ctx, link)
		cancel()
		n.unlink(link, err)
	}
	if n.missing() > 0 {
		n.Connect()
	}
}
