package main

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// floorOf is a bare command through go-redis. No single call can be faster.
func floorOf(name string, call func(ctx context.Context, client *redis.Client, key string) error) peer {
	return peer{
		name: name, setup: goRedisPool, floor: true,
		open: func(address string, l limit) (*limiter, error) {
			client := pooled(address)
			return oneByOne(l, func(ctx context.Context, key string) (bool, error) {
				err := call(ctx, client, key)
				return err == nil, err
			}, client.Close), nil
		},
	}
}

func ping() peer {
	return floorOf("floor: PING", func(ctx context.Context, client *redis.Client, _ string) error {
		return client.Ping(ctx).Err()
	})
}

func incr() peer {
	return floorOf("floor: INCR", func(ctx context.Context, client *redis.Client, key string) error {
		return client.Incr(ctx, key).Err()
	})
}

func evalsha() peer {
	one := redis.NewScript(`return 1`)
	return floorOf(evalshaName, func(ctx context.Context, client *redis.Client, key string) error {
		return one.Run(ctx, client, []string{key}, 100, 100, 60, 1).Err()
	})
}

// leastScript makes a call with the commands that every exact decision on a few numbers needs by the
// clock of Redis, and decides nothing.
func leastScript() peer {
	least := redis.NewScript(`redis.call('TIME')
redis.call('GET', KEYS[1])
redis.call('SETRANGE', KEYS[1], '0', '123456789012345678901234')
return 1`)
	return floorOf(leastName, func(ctx context.Context, client *redis.Client, key string) error {
		return least.Run(ctx, client, []string{key}, "1").Err()
	})
}
