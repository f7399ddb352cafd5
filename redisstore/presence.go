package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// firstBeat is long enough after a store was opened to be sure that it is in use: a
	// config that is only looked at is no instance.
	firstBeat = time.Second

	// beatInterval is how often a process says that it lives, and lifetime how long that is
	// believed.
	beatInterval = 5 * time.Second
	lifetime     = 3 * beatInterval

	// farewell is how long a process counts that has closed its store. It may have another
	// one, with other options, which says so within an interval.
	farewell = beatInterval + time.Second

	// beatTimeout and farewellTimeout bound a beat, and how long the last one may hold up
	// the closing of the store.
	beatTimeout     = time.Second
	farewellTimeout = 100 * time.Millisecond
)

// beatScript keeps a sorted set of processes by the time until which they are taken to
// live, and returns how many there are. Like all of them it goes by the time of Redis. A
// key of another type is no set of processes, and makes room for one.
const beatScript = `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local gone = redis.pcall('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if type(gone) == 'table' and string.find(gone.err, 'WRONGTYPE', 1, true) then redis.call('DEL', KEYS[1]) end
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return redis.call('ZCARD', KEYS[1])`

// presence tells the fleet that this process lives, and knows of how many it has told
// the same. No request waits for it. While Redis is away the last number stands.
type presence struct {
	eval func(ctx context.Context, script, key string, args ...any) (int64, error)
	warn func(error)
	key  string
	name string

	seen    atomic.Int64
	present atomic.Bool // the fleet has heard of this process
	quit    chan struct{}
	once    sync.Once
	done    chan struct{}
}

// announce begins to tell the fleet, until leave. What Redis has against it goes to warn.
func announce(eval func(ctx context.Context, script, key string, args ...any) (int64, error), warn func(error), options Options) *presence {
	p := &presence{
		eval: eval,
		warn: warn,
		key:  options.KeyPrefix + ":instances",
		name: cmp.Or(options.Instance, rand.Text()),
		quit: make(chan struct{}),
		done: make(chan struct{}),
	}
	go p.live()
	return p
}

// instances is how many processes were last seen, at least this one.
func (p *presence) instances() int { return max(1, int(p.seen.Load())) }

func (p *presence) live() {
	defer close(p.done)
	timer := time.NewTimer(firstBeat)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			p.beat(lifetime, beatTimeout)
			timer.Reset(beatInterval)
		case <-p.quit:
			return
		}
	}
}

// leave ends it. A second time it does nothing.
func (p *presence) leave() {
	p.once.Do(func() {
		close(p.quit)
		<-p.done
		if p.present.Load() {
			p.beat(farewell, farewellTimeout)
		}
	})
}

// beat has the fleet take this process to live for a while, and counts it.
func (p *presence) beat(life, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	seen, err := p.eval(ctx, beatScript, p.key, p.name, life.Milliseconds(), lifetime.Milliseconds())
	if err != nil {
		// If Redis is away, whoever makes decisions says so.
		if errors.As(err, new(redis.Error)) {
			p.warn(err)
		}
		return
	}
	p.seen.Store(seen)
	p.present.Store(true)
}
