package redisstore

import (
	"context"
	"time"
)

const (
	// connectTimeout bounds the making of a connection in the background.
	connectTimeout = 5 * time.Second

	// connectPause keeps failed decisions from trying to connect at their rate.
	connectPause = 100 * time.Millisecond
)

// connect makes a connection in the background after a decision that failed, and tries
// until Redis answers: so the next decision finds all ready, or that Redis is away. Dialling,
// TLS and logging in can together take longer than a decision may, although one call on
// a connection that stands does not; and a decision that runs out of time closes its
// connection. Without this, such a Redis would never be reached.
func (l *lane) connect() {
	if !l.connecting.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer l.connecting.Store(false)
		for answered := false; !answered; {
			answered = l.reach()
			select {
			case <-time.After(connectPause):
			case <-l.quit:
				return
			}
		}
	}()
}

// reach runs the script with nothing to decide. Whatever Redis answers, and be it that
// this user may not ask, the connection then waits in the pool; and if it may, Redis
// knows the script.
func (l *lane) reach() (answered bool) {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	c := newCall()
	defer c.free()
	err := l.evaluate(ctx, c, false)
	if err == nil {
		return true
	}
	switch Kind(err) {
	case KindTimeout, KindRefused, KindNetwork:
		return false
	}
	return true
}
