package main

import (
	"context"
	"time"

	redisrate "github.com/go-redis/redis_rate/v10"
	"github.com/throttled/throttled/v2"
	throttledredis "github.com/throttled/throttled/v2/store/goredisstore.v9"
	ulule "github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"
)

func redisRate() peer {
	return peer{
		name: redisRateName, setup: goRedisPool,
		open: func(address string, l limit) (*limiter, error) {
			client := pooled(address)
			r := redisrate.NewLimiter(client)
			rate := redisrate.Limit{Rate: int(l.events), Burst: int(l.events), Period: l.period}
			return oneByOne(l, func(ctx context.Context, key string) (bool, error) {
				result, err := r.Allow(ctx, key, rate)
				if err != nil {
					return false, err
				}
				return result.Allowed > 0, nil
			}, client.Close), nil
		},
	}
}

// throttledGCRA compares and swaps. Its answers on a contended key are errors.
func throttledGCRA() peer {
	return peer{
		name: "throttled v2", setup: goRedisPool,
		open: func(address string, l limit) (*limiter, error) {
			client := pooled(address)
			s, err := throttledredis.NewCtx(client, "throttled:")
			if err != nil {
				return nil, err
			}
			r, err := throttled.NewGCRARateLimiterCtx(s, throttled.RateQuota{
				MaxRate:  throttled.PerDuration(int(l.events), l.period),
				MaxBurst: int(l.events) - 1,
			})
			if err != nil {
				return nil, err
			}
			return oneByOne(l, func(ctx context.Context, key string) (bool, error) {
				limited, _, err := r.RateLimitCtx(ctx, key, 1)
				return !limited && err == nil, err
			}, client.Close), nil
		},
	}
}

func ululeLimiter() peer {
	return peer{
		name: ululeName, setup: goRedisPool,
		open: func(address string, l limit) (*limiter, error) {
			client := pooled(address)
			s, err := ululeredis.NewStore(client)
			if err != nil {
				return nil, err
			}
			r := ulule.New(s, ulule.Rate{Limit: l.events, Period: max(l.period, time.Millisecond)})
			return oneByOne(l, func(ctx context.Context, key string) (bool, error) {
				result, err := r.Get(ctx, key)
				return !result.Reached && err == nil, err
			}, client.Close), nil
		},
	}
}
