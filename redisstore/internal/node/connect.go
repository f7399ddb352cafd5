package node

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// connectTimeout bounds the making of a connection in the background, and firstTimeout its first tries: what Redis or a
	// firewall has not answered may never get an answer, so a short outage would last until the end of the try.
	connectTimeout = 5 * time.Second
	firstTimeout   = 2 * time.Second

	// connectPause is between two tries to reach Redis, and keeps failed decisions from
	// trying at their rate.
	connectPause = 100 * time.Millisecond
)

// Connect makes a connection in the background, and tries until Redis answers. So the next
// decision finds a connection, or that Redis is away. Dialing, TLS and logging in can together
// take longer than a decision may, although one call over an established connection does not.
// Without this, such a Redis would never be reached. While the breaker is open it goes on until
// Redis can charge.
func (n *Node) Connect() {
	if !n.connecting.CompareAndSwap(false, true) {
		return
	}
	go func() {
		closed := !n.mend()
		n.connecting.Store(false)
		if !closed && n.breaker.open.Load() {
			n.Connect() // it has opened since mend looked
		}
	}()
}

// mend returns true when Redis answers and the breaker is closed, or false when the node is.
func (n *Node) mend() bool {
	start := time.Now()
	for {
		answered, err := n.reach(min(max(firstTimeout, time.Since(start)), connectTimeout))
		if errors.Is(err, store.ErrClosed) {
			return false
		}
		if answered {
			n.Tend()
		}
		if answered && n.breaker.due() {
			n.breaker.probe(n.charges)
		}
		select {
		case <-time.After(connectPause):
		case <-n.config.Done:
			return false
		}
		if answered && !n.breaker.open.Load() {
			return true
		}
	}
}

// reach runs the script with nothing to decide. Any reply, even a permission error, leaves an
// established link; a successful one also means that Redis has cached the
// script.
func (n *Node) reach(timeout time.Duration) (answered bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_, err = n.Ask(ctx)
	switch Failure(err) {
	case store.FailureTimeout, store.FailureRefused, store.FailureNetwork:
		return false, err
	}
	return true, err
}

// Ask runs the script with nothing to decide, whatever the breaker says, and returns how long that
// took.
func (n *Node) Ask(ctx context.Context) (time.Duration, error) {
	c := newCall()
	defer c.free()
	start := time.Now()
	err := n.evaluate(ctx, c.Batch, false)
	return time.Since(start), err
}

// Clock returns how far the clock of Redis is ahead of this machine's, within half of the time
// that the answer took.
func (n *Node) Clock(ctx context.Context) (ahead, took time.Duration, err error) {
	return askTime(func(cmd redis.Cmder) error { return n.Process(ctx, cmd, false) })
}

// askTime is [Node.Clock] over any connection. The time that it took is also known if Redis answered with an error.
func askTime(process func(redis.Cmder) error) (ahead, took time.Duration, err error) {
	cmd := redis.NewTimeCmd(context.Background(), "time")
	from := time.Now()
	err = process(cmd)
	if took = time.Since(from); err != nil {
		return 0, took, err
	}
	return cmd.Val().Sub(from.Add(took / 2)), took, nil
}

// Settle returns nil when requests make calls, or why they still make none, after Redis has answered a probe.
func (n *Node) Settle(ctx context.Context) error { return n.breaker.settle(ctx, n.charges) }

// Info returns the fields of INFO. It fails if the user may not ask.
func (n *Node) Info(ctx context.Context) (map[string]string, error) {
	info := redis.NewStringCmd(ctx, "info")
	if err := n.Process(ctx, info, false); err != nil {
		return nil, err
	}
	return fields(info.Val()), nil
}

// fields reads lines of names and values.
func fields(text string) map[string]string {
	all := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			all[name] = value
		}
	}
	return all
}

// probeScript writes a key that soon expires, as charges do.
const probeScript = `redis.call('SET', KEYS[1], '', 'PX', 1000)
redis.call('SETRANGE', KEYS[1], '0', '1')
return 0`

// charges is Charges for the breaker.
func (n *Node) charges() error {
	ctx, cancel := context.WithTimeout(context.Background(), n.config.Timeout)
	defer cancel()
	return n.Charges(ctx)
}

// Whole finds out whether the node has all keys: one of a Cluster refuses a call with keys of two slots.
func (n *Node) Whole(ctx context.Context) error {
	if n.config.Cluster {
		return nil
	}
	key := n.config.ProbeKey(0)
	return n.Process(ctx, redis.NewIntCmd(ctx, "eval", "return 0", 2, key+"{0}", key+"{1}"), false)
}

// Charges finds out whether Redis can charge: a Redis that answers may be unable to write.
func (n *Node) Charges(ctx context.Context) error {
	key := n.config.ProbeKey(uint16(n.failedSlot.Load()))
	err := n.Process(ctx, redis.NewIntCmd(ctx, "eval", probeScript, 1, key), false)
	if _, moved := redis.IsMovedError(err); moved || isAsk(err) {
		return nil // the slot is elsewhere, and the node is well
	}
	return err
}
