package redisstore

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/store"
)

// lane is the way to one Redis: what goes to it goes through its batcher.
type lane struct {
	batcher

	client  redis.Cmdable
	script  *script
	breaker *breaker
}

// run makes a call, unless Redis is known not to answer.
func (l *lane) run(ctx context.Context, c *call) error {
	return l.breaker.run(func() (struct{}, error) { return struct{}{}, l.evaluate(ctx, c) })
}

// evaluate runs the script by its digest, and by its text if Redis does not know it: then
// nothing has run yet.
func (l *lane) evaluate(ctx context.Context, c *call) error {
	cmd := redis.NewStringCmd(ctx, c.arguments("evalsha", l.script.digest)...)
	err := l.process(ctx, cmd)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = redis.NewStringCmd(ctx, c.arguments("eval", l.script.text)...)
		err = l.process(ctx, cmd)
	}
	if err == nil {
		err = c.answer(cmd.Val())
	}
	return err
}

func (l *lane) process(ctx context.Context, cmd redis.Cmder) error {
	err := l.client.(interface {
		Process(context.Context, redis.Cmder) error
	}).Process(ctx, cmd)
	if errors.Is(err, redis.ErrClosed) {
		return store.ErrClosed
	}
	return err
}
