package redisstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// links are connections to a Redis that is far. The pool of go-redis makes one when a call
// finds none free, on that call's time, and from afar dialling, TLS, logging in and the
// call itself are more than a decision may take. So these are made in the background, and
// no more calls are made at once than there are links.
type links struct {
	count  atomic.Int32 // with those in use
	making sync.Mutex

	mu   sync.Mutex
	free []*redis.Conn // the one that was not used for longest is the first
}

// conn is a connection, or the pool.
type conn interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipelined(ctx context.Context, fn func(redis.Pipeliner) error) ([]redis.Cmder, error)
}

// take takes a link that is free, if there is one.
func (s *links) take() *redis.Conn {
	if s.count.Load() == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) == 0 {
		return nil
	}
	link := s.free[0]
	s.free = s.free[:copy(s.free, s.free[1:])]
	return link
}

func (s *links) put(link *redis.Conn) {
	s.mu.Lock()
	s.free = append(s.free, link)
	s.mu.Unlock()
}

// drop closes a link, and the others too if they are most likely as broken.
func (s *links) drop(link *redis.Conn, all bool) {
	_ = link.Close()
	dropped := 1
	s.mu.Lock()
	if all {
		for _, other := range s.free {
			_ = other.Close()
		}
		dropped += len(s.free)
		s.free = nil
	}
	s.mu.Unlock()
	s.count.Add(int32(-dropped))
}

// remote reports whether the making of a connection may take too much of a decision's time.
func (b *batcher) remote() bool { return 8*b.trip.is() > b.timeout }

// missing is how many links there should be besides those that there are: one for each
// call, and one for what else there is to ask. Half of the pool is for others.
func (l *lane) missing() int {
	if !l.remote() {
		return 0
	}
	return max(0, min(maxCalls+1, l.client.Options().PoolSize/2)-int(l.links.count.Load()))
}

// link makes the links that are missing.
func (l *lane) link() {
	l.links.making.Lock()
	defer l.links.making.Unlock()
	var all sync.WaitGroup
	for range l.missing() {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
			defer cancel()
			link := l.client.Conn()
			if err := l.ping(ctx, link); !replied(err) {
				_ = link.Close()
				return
			}
			l.links.count.Add(1)
			l.links.put(link)
		})
	}
	all.Wait()
}

// ping makes a connection ready, and measures the distance if it was ready before.
func (l *lane) ping(ctx context.Context, c conn) error {
	begun := time.Now()
	err := c.Process(ctx, redis.NewStatusCmd(ctx, "ping"))
	if replied(err) {
		l.trip.measure(time.Since(begun))
	}
	return err
}

// replied reports whether Redis has answered a command, and be it with an error.
func replied(err error) bool {
	var said redis.Error
	return err == nil || errors.As(err, &said)
}

// unlink ends the use of a link.
func (l *lane) unlink(link *redis.Conn, err error) {
	if replied(err) && !redis.IsReadOnlyError(err) { // go-redis closes the latter's
		l.links.put(link)
		return
	}
	l.links.drop(link, kind(err) != store.FailureTimeout)
	l.connect()
}

// keep uses each link that is free, so that none is closed for being idle, and makes those
// that are missing.
func (l *lane) keep() {
	for range l.links.count.Load() {
		link := l.links.take()
		if link == nil {
			break
		}
		ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
		err := l.ping(ctx, link)
		cancel()
		l.unlink(link, err)
	}
	if l.missing() > 0 {
		l.connect()
	}
}
