package redisstore

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// connectTimeout bounds the making of a connection in the background.
	connectTimeout = 5 * time.Second

	// connectPause is between two tries to reach Redis, and keeps failed decisions from
	// trying at their rate.
	connectPause = 100 * time.Millisecond
)

// connect makes a connection in the background, and tries until Redis answers: so the
// next decision finds all ready, or that Redis is away. Dialling, TLS and logging in can
// together take longer than a decision may, although one call on a connection that stands
// does not. Without this, such a Redis would never be reached. While the breaker is open
// it goes on until Redis can charge.
func (l *lane) connect() {
	if !l.connecting.CompareAndSwap(false, true) {
		return
	}
	go func() {
		closed := !l.mend()
		l.connecting.Store(false)
		if !closed && l.breaker.open.Load() {
			l.connect() // it has opened since mend looked
		}
	}()
}

// prepare makes ready what the first decisions need, if Redis is there: it sends the script,
// and makes the connections to a Redis that is far.
func (l *lane) prepare() {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	c := newCall()
	defer c.free()
	if replied(l.process(ctx, redis.NewStringCmd(ctx, c.arguments("eval", l.script.Load().text)...), false)) {
		_ = l.ping(ctx, l.client)
		l.link()
	}
}

// mend returns when Redis answers and the breaker is closed, or false when the lane is.
func (l *lane) mend() bool {
	for {
		answered, err := l.reach()
		if errors.Is(err, store.ErrClosed) {
			return false
		}
		if answered {
			l.link()
		}
		if answered && l.breaker.due() {
			l.breaker.probe(l.charges)
		}
		select {
		case <-time.After(connectPause):
		case <-l.quit:
			return false
		}
		if answered && !l.breaker.open.Load() {
			return true
		}
	}
}

// reach runs the script with nothing to decide. Whatever Redis answers, and be it that
// this user may not ask, the connection then waits in the pool; and if it may, Redis
// knows the script.
func (l *lane) reach() (answered bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	c := newCall()
	defer c.free()
	err = l.evaluate(ctx, c, false)
	switch kind(err) {
	case store.FailureTimeout, store.FailureRefused, store.FailureNetwork:
		return false, err
	}
	_ = l.ping(ctx, l.client) // now that there is a connection, it tells how far Redis is
	return true, err
}

// probeScript writes what is gone a moment later.
const probeScript = `redis.call('SET', KEYS[1], '', 'PX', 1000)
return 0`

// charges finds out whether Redis can charge: one that answers may be unable to write.
func (l *lane) charges() error {
	ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
	defer cancel()
	err := l.process(ctx, redis.NewIntCmd(ctx, "eval", probeScript, 1, l.probeKey(uint16(l.slot.Load()))), false)
	_, moved := redis.IsMovedError(err)
	_, asked := redis.IsAskError(err)
	if moved || asked {
		return nil // the slot is elsewhere, and the node is well
	}
	return err
}

// probeKey is where a probe writes. In a Cluster it has the slot whose question failed.
func (s *Store) probeKey(slot uint16) string {
	if !s.slots {
		return s.prefix + ":probe"
	}
	for i := 0; ; i++ {
		if tag := strconv.Itoa(i); slotOf(tag) == slot {
			return s.prefix + ":{" + tag + "}:probe"
		}
	}
}
