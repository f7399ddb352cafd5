package redisstore

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// lane is the way to one Redis: what goes to it goes through its batcher.
type lane struct {
	batcher

	address string
	client  *redis.Client
	script  *atomic.Pointer[script]
	breaker *breaker

	waryUntil atomic.Int64    // nanoseconds since the epoch; 0: calls are made without care
	quit      <-chan struct{} // closed with the store

	probeKey   func(slot uint16) string // where a probe may write
	slot       atomic.Uint32            // of a Cluster, in which a question failed
	cutOff     atomic.Bool              // it last said that it sees too few of the nodes of its Cluster
	connecting atomic.Bool
	named      time.Time // as belonging to the topology, last; see lanes
}

// run makes a call, unless Redis is known not to answer.
func (l *lane) run(ctx context.Context, c *call) error {
	begun := l.breaker.now()
	return l.breaker.run(func() (struct{}, error) { return l.breaker.judge(begun, l.evaluate(ctx, c, false)) })
}

// evaluate runs the script, if need be with the word that makes a node take what is about
// to become its own.
func (l *lane) evaluate(ctx context.Context, c *call, asking bool) error {
	cmd := l.evalsha(ctx, c)
	return l.finish(ctx, c, cmd, l.process(ctx, cmd, asking), asking)
}

// finish takes the answer of a call by the script's digest. If Redis did not know that,
// nothing has run yet, and it gets the text. If Redis refused to write, nothing was written,
// and the call is made again with care.
func (l *lane) finish(ctx context.Context, c *call, cmd *redis.StringCmd, err error, asking bool) error {
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = redis.NewStringCmd(ctx, c.arguments("eval", l.script.Load().text)...)
		err = l.process(ctx, cmd, asking)
	}
	again := err != nil && !c.careful && refusesToWrite(err)
	if again {
		c.careful = true
		cmd = redis.NewStringCmd(ctx, c.arguments("evalsha", l.script.Load().digest)...)
		err = l.process(ctx, cmd, asking)
	}
	if err == nil {
		err = c.answer(cmd.Val())
	}
	if err == nil && c.careful {
		l.learnCare(c.unable, again)
	}
	return err
}

// evalsha makes the command of a call.
func (l *lane) evalsha(ctx context.Context, c *call) *redis.StringCmd {
	c.careful = len(c.keys) > 0 && l.wary()
	return redis.NewStringCmd(ctx, c.arguments("evalsha", l.script.Load().digest)...)
}

func (l *lane) process(ctx context.Context, cmd redis.Cmder, asking bool) error {
	var err error
	if asking {
		_, _ = l.pipelined(ctx, func(p redis.Pipeliner) error {
			return errors.Join(p.Do(ctx, "asking").Err(), p.Process(ctx, cmd))
		})
		err = cmd.Err()
	} else if link := l.links.take(); link != nil {
		err = link.Process(ctx, cmd)
		l.unlink(link, err)
	} else {
		err = l.client.Process(ctx, cmd)
	}
	return closedOr(err)
}

// way is how a lane has a command carried out.
type way = func(l *lane, ctx context.Context, cmd redis.Cmder, asking bool) error

// guarded is process for a node that may be known not to answer.
func (l *lane) guarded(ctx context.Context, cmd redis.Cmder, asking bool) error {
	if err := l.breaker.refuses(ctx); err != nil {
		return err
	}
	begun := l.breaker.now()
	return l.breaker.run(func() (struct{}, error) { return l.breaker.judge(begun, l.process(ctx, cmd, asking)) })
}

// pipelined sends several commands at once.
func (l *lane) pipelined(ctx context.Context, fn func(redis.Pipeliner) error) (cmds []redis.Cmder, err error) {
	link := l.links.take()
	if link == nil {
		return l.client.Pipelined(ctx, fn)
	}
	cmds, err = link.Pipelined(ctx, fn)
	broken := err
	for _, cmd := range cmds { // the first may have been refused, and the connection have broken later
		if !replied(cmd.Err()) {
			broken = cmd.Err()
		}
	}
	l.unlink(link, broken)
	return cmds, err
}

// closedOr calls the closing of a client what callers know it by, and keeps errors short.
func closedOr(err error) error {
	if errors.Is(err, redis.ErrClosed) {
		return store.ErrClosed
	}
	return clip(err)
}
