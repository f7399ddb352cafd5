package link

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Method is how a node carries out a command.
type Method = func(n *node.Node, ctx context.Context, cmd redis.Cmder, asking bool) error

// Process has a command carried out by the server that has a key. The command is made again for
// each node that is asked.
func (l *Link) Process(ctx context.Context, key string, method Method, command func() redis.Cmder) (cmd redis.Cmder, err error) {
	err = l.follow(ctx, key, func(n *node.Node, asking bool) error {
		cmd = command()
		return method(n, ctx, cmd, asking)
	})
	if err != nil {
		return nil, err
	}
	return cmd, nil
}

// follow asks the server that has a key, wherever the servers say that it is.
func (l *Link) follow(ctx context.Context, key string, ask func(n *node.Node, asking bool) error) error {
	slot := l.Topology.Slot(key)
	n, err := l.Topology.Node(ctx, slot)
	if err != nil {
		return err
	}
	if err = ask(n, false); err == nil {
		return nil
	}
	return l.redirected(ctx, slot, err, ask)
}

// EvalText runs a script that answers a text.
func (l *Link) EvalText(ctx context.Context, method Method, script, key string, args ...any) (string, error) {
	cmd, err := l.Process(ctx, key, method, func() redis.Cmder {
		return redis.NewStringCmd(ctx, append([]any{"eval", l.Script.Load().Finish(script), 1, key}, args...)...)
	})
	if err != nil {
		return "", err
	}
	return cmd.(*redis.StringCmd).Val(), nil
}

// Breaker returns the state of the circuit breaker: closed while Redis is asked, open while it is
// not, and half-open while one call finds out whether it is back. If there are several masters, the
// worst state counts.
func (l *Link) Breaker() string {
	worst := store.BreakerClosed
	for _, n := range l.Topology.Masters() {
		switch state := n.Breaker(); state {
		case store.BreakerOpen:
			return state
		case store.BreakerHalfOpen:
			worst = state
		}
	}
	return worst
}

// Stats returns what the link knows of itself and of the servers.
func (l *Link) Stats() store.Stats {
	s := store.Stats{Held: l.Holds.ByZone(), Breaker: l.Breaker(), Silent: l.Topology.Silent()}
	s.Lost, _ = l.Outbox.Lost()
	s.Waiting = l.Outbox.Len()
	for _, n := range l.Topology.Masters() {
		s.Calls += n.Calls()
		s.Waited += n.Waited()
	}
	return s
}

const (
	// firstTend is when the connections of a store that was opened are looked after, and tendInterval how
	// often from then on.
	firstTend    = time.Second
	tendInterval = 5 * time.Second
)

// Tend makes connections, and looks after them until the link is done.
func (l *Link) Tend() {
	for _, n := range l.Topology.Masters() {
		go n.Prepare()
	}
	timer := time.NewTimer(firstTend)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-l.Done:
			return
		}
		for _, n := range l.Topology.Masters() {
			n.Tend()
			l.warnFar(n)
		}
		timer.Reset(tendInterval)
	}
}

// warnFar says that the timeout is short for the round trip to a Redis.
func (l *Link) warnFar(n *node.Node) {
	if trip := n.Distance(); 3*trip > l.Timeout && l.distant.Allow() {
		l.Logger().Warn("the timeout is short for the round trip to redis: under load, requests may not be decided in time; "+advice.NearerStore.With().String(),
			zap.String("address", n.Address), zap.Duration("round_trip", trip), zap.Duration("timeout", l.Timeout))
	}
}

// failed tells the topology of a call that failed, unless it was not made.
func (l *Link) failed(err error) error {
	if err != nil && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrBusy) {
		l.Topology.ReportFailure()
	}
	return err
}
