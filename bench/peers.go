package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// peer is a limiter that decides through Redis, or a floor that bounds all of them.
type peer struct {
	name  string
	setup string // what is between it and Redis
	floor bool   // it decides nothing, and always allows
	lends bool   // it gives back what it takes, so it should refuse nothing
	open  func(address string, l limit) (*limiter, error)
}

// limit is the same for all peers of a workload.
type limit struct {
	events int64
	period time.Duration
	zones  int // how many such limits a request has to pass, at least 1
}

// limiter is an open peer.
type limiter struct {
	taker func() take // for one goroutine
	close func() error
}

// take decides one request of a client and reports whether all its zones admit it.
type take func(ctx context.Context, client int) (bool, error)

// Names of zones and clients are made ahead, so that they add to no peer's costs.
var (
	zones   = []string{"a", "b", "c"}
	clients = names("")
	zoned   = [][]string{names("a:"), names("b:"), names("c:")}
)

const maxClients = 100_000

func names(prefix string) []string {
	list := make([]string, maxClients)
	for i := range list {
		list[i] = fmt.Sprintf("%s203.%d.%d.%d", prefix, i/65536, i/256%256, i%256)
	}
	return list
}

// oneByOne makes a limiter of a call that decides one key: a request that has several limits
// makes one call after another, until one refuses it.
func oneByOne(l limit, call func(ctx context.Context, key string) (bool, error), end func() error) *limiter {
	decide := func(ctx context.Context, client int) (bool, error) {
		return call(ctx, clients[client])
	}
	if l.zones > 1 {
		decide = func(ctx context.Context, client int) (bool, error) {
			for _, keys := range zoned[:l.zones] {
				if admitted, err := call(ctx, keys[client]); !admitted || err != nil {
					return false, err
				}
			}
			return true, nil
		}
	}
	return &limiter{taker: func() take { return decide }, close: end}
}

// peerPool is how many connections the peers may have: one for each request in progress, which
// makes them fastest. Caddy's store has go-redis's default.
const peerPool = 256

func pooled(address string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: address, PoolSize: peerPool})
}

const goRedisPool = "go-redis, pool of 256"

// The names of our store and of the peers that claims and ratios compare it with.
const (
	ourName       = "caddyratelimit"
	denyCacheName = "caddyratelimit, deny cache on"
	lendingName   = "caddyratelimit, lend"
	redisRateName = "go-redis/redis_rate v10"
	ululeName     = "ulule/limiter v3"
	traefikName   = "in the style of Traefik v3"
	evalshaName   = "floor: EVALSHA return 1"
	leastName     = "floor: TIME, GET and SETRANGE in a script"
)

// peers are all limiters and floors, in the order of the tables.
func peers() []peer {
	return []peer{
		ours(ourName, "token_bucket", noDenyCache),
		redisRate(),
		throttledGCRA(),
		ululeLimiter(),
		sethvargoStyle(),
		traefikStyle(),
		springStyle(),
		shenyuStyle(),
		ping(),
		incr(),
		evalsha(),
	}
}
