// Package node sends requests to one Redis: in batches, through a breaker, over connections
// that are made in the background, and nothing twice that may have been carried out.
//
// go-redis's own retries are off, because a lost reply may belong to a charge that was made. Only what provably
// did not run is repeated: NOSCRIPT, what a node of a Cluster refused, and a call whose first write Redis refused, which
// then is careful: it decides, and writes nothing. Calls have connections of their own, because go-redis's pool looks at each before each use.
package node

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/protocol"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Node is one Redis.
type Node struct {
	Address string

	config   *Config
	client   *redis.Client
	breaker  *breaker
	batcher  *batcher
	distance distance
	links    links
	dials    dials

	replica    atomic.Pointer[replica]
	failedSlot atomic.Uint32 // of a Cluster, in which a request failed
	connecting atomic.Bool
	closed     atomic.Bool
	calls      atomic.Uint64
}

// replica notes that the server has said on two connections that it is one. go-redis closes each connection on which it says
// so. Calls that are careful from the start write nothing, so they keep theirs.
type replica struct {
	said  *protocol.UnwrittenError
	until time.Time
}

// New returns the node at an address. It does not connect.
func New(address string, c *Config) *Node {
	n := &Node{Address: address, config: c, breaker: newBreaker()}
	o := c.Options(address)
	o.Username, o.Password, o.DB = c.Username, c.Password, c.DB
	dial := o.Dialer
	o.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		defer n.dials.begin()()
		return dial(ctx, network, address)
	}
	n.links.used = make(chan struct{}, o.PoolSize)
	n.client = redis.NewClient(o)
	n.breaker.opened = n.Connect
	send := n.send
	if c.Cluster {
		send = n.sendBySlot
	}
	n.batcher = newBatcher(c.Timeout, &n.distance, &n.links.count, send)
	return n
}

// Fake returns a node whose Redis is a function, and as far away as trip. It is for tests of
// other packages.
func Fake(c *Config, trip time.Duration, send func(ctx context.Context, requests []*Request) error) *Node {
	n := &Node{config: c, breaker: newBreaker()}
	n.connecting.Store(true) // there is nothing to connect to
	n.batcher = newBatcher(c.Timeout, &n.distance, &n.links.count, func(ctx context.Context, c *call) error {
		ctx, cancel := context.WithTimeout(ctx, c.timeout)
		defer cancel()
		return send(ctx, c.requests)
	})
	n.distance.measure(trip)
	n.links.count.Store(maxCalls)
	return n
}

// Close closes the connections.
func (n *Node) Close() error {
	n.closed.Store(true)
	return n.client.Close()
}

// Distance returns about how long a call takes if nothing delays it; 0 if that is not known.
func (n *Node) Distance() time.Duration { return n.distance.is() }

// Ready returns nil, or why there is no use in asking now: an error that is
// [store.ErrUnavailable]. While a probe is under way it waits for what that finds out, as long
// as ctx lasts, but not for longer than a call may take.
func (n *Node) Ready(ctx context.Context) error {
	if n.breaker.open.Load() && n.breaker.probed() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, n.config.Timeout)
		defer cancel()
	}
	return n.breaker.refuses(ctx)
}

// Breaker returns the state of the breaker: closed, open or half-open.
func (n *Node) Breaker() string { return n.breaker.state() }

// Do has a request answered, unless the node is known not to answer, and returns when it is or ctx is done. In
// the latter case the request may then be carried out or not, and must not be used again. Asking is for a slot
// of a Cluster that is about to become the node's own.
func (n *Node) Do(ctx context.Context, r *Request, asking bool) error {
	if err := n.Ready(ctx); err != nil {
		return err
	}
	r.again(asking)
	err := n.batcher.do(ctx, r)
	if r.migrating(err) && !r.single {
		r.again(asking)
		r.single = true
		err = n.batcher.do(ctx, r)
	}
	if err != nil && !works(err) && !errors.Is(err, store.ErrUnavailable) && !saysNothing(err) {
		n.failedSlot.Store(uint32(r.Slot))
		n.Connect()
	}
	return err
}

// send makes a call, unless Redis is known not to answer.
func (n *Node) send(ctx context.Context, c *call) error {
	return n.breaker.run(func() error { return n.evaluate(ctx, c.Batch, false) })
}

// evaluate runs the script. Asking has a node of a Cluster answer for a slot that is about to
// become its own.
func (n *Node) evaluate(ctx context.Context, b *protocol.Batch, asking bool) error {
	cmd := n.evalsha(ctx, b)
	return n.finish(ctx, b, cmd, n.Process(ctx, cmd, asking), asking)
}

// evalsha makes the command of a call.
func (n *Node) evalsha(ctx context.Context, b *protocol.Batch) *redis.StringCmd {
	if r := n.replica.Load(); r != nil && b.Checks() > 0 && time.Now().Before(r.until) {
		b.TakeCare(r.said)
	}
	return redis.NewStringCmd(ctx, b.Call(n.config.Script.Load())...)
}

// finish takes the answer of a call by the script's digest, which may be made again. A call that has failed before
// anything was written is made again by the script's text if Redis did not know its digest, and with care if Redis refused to
// write. After READONLY it is made without care first, because the address may lead to another server by now: to the new
// master, which may not know the script.
func (n *Node) finish(ctx context.Context, b *protocol.Batch, cmd *redis.StringCmd, err error, asking bool) error {
	for tries := 0; err != nil && tries < 4; tries++ {
		args := b.Call
		switch said := read(err); {
		case redis.HasErrorPrefix(err, "NOSCRIPT"):
			args = b.CallText
		case b.Careful() || !said.RefusesWrite(): // else nothing was written
			return err
		case tries > 0 || !said.Demoted():
			unwritten := protocol.Unwritten(err.Error())
			if b.TakeCare(unwritten); said.Demoted() {
				n.replica.Store(&replica{unwritten, time.Now().Add(trustTime)})
			}
		}
		cmd = redis.NewStringCmd(ctx, args(n.config.Script.Load())...)
		err = n.Process(ctx, cmd, asking)
	}
	if err != nil {
		return err
	}
	return b.Read(cmd.Val())
}

// Calls returns how often commands were sent. Several that were sent together are one call.
func (n *Node) Calls() uint64 { return n.calls.Load() }

// Waited returns for how long requests have waited in this process before they were sent, all together.
func (n *Node) Waited() time.Duration {
	n.batcher.mu.Lock()
	defer n.batcher.mu.Unlock()
	return n.batcher.waited
}

// Process carries out a command.
func (n *Node) Process(ctx context.Context, cmd redis.Cmder, asking bool) error {
	if asking {
		n.ProcessAll(ctx, redis.NewCmd(ctx, "asking"), cmd)
		return n.told(cmd.Err())
	}
	n.calls.Add(1)
	return n.told(n.use(ctx, func(ctx context.Context, c *redis.Conn) error { return c.Process(ctx, cmd) }))
}

// told is the error of a command, with what to do.
func (n *Node) told(err error) error { return Advise(closedOr(err), !n.config.Cluster) }

// ProcessAll carries out commands that are sent together. Each has its own error.
func (n *Node) ProcessAll(ctx context.Context, cmds ...redis.Cmder) {
	n.calls.Add(1)
	unsent := n.use(ctx, func(ctx context.Context, c *redis.Conn) error {
		_, broken := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			return p.BatchProcess(ctx, cmds...) // which only keeps them
		})
		for _, cmd := range cmds { // the first may have been refused, and the connection have broken later
			n.heed(cmd.Err())
			if !replied(cmd.Err()) {
				broken = cmd.Err()
			}
		}
		return broken
	})
	never := errors.As(unsent, new(unsentError))
	for _, cmd := range cmds {
		if never {
			cmd.SetErr(unsent)
		}
		cmd.SetErr(closedOr(cmd.Err()))
	}
}

// Slots asks a node of a Cluster which node has which slots, and of which failover it knows last. The answer is that of
// CLUSTER SLOTS, because CLUSTER SHARDS is new in Redis 7. go-redis does not read one without a host. The epoch is 0 if the user
// may not ask for it.
func (n *Node) Slots(ctx context.Context) (ranges []any, epoch int64, err error) {
	slots, info := redis.NewSliceCmd(ctx, "cluster", "slots"), redis.NewStringCmd(ctx, "cluster", "info")
	n.ProcessAll(ctx, slots, info)
	if err = slots.Err(); err == nil && len(slots.Val()) == 0 {
		err = errors.New("it knows no slots")
	}
	epoch, _ = strconv.ParseInt(fields(info.Val())["cluster_current_epoch"], 10, 64)
	return slots.Val(), epoch, err
}
