package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/store"
)

const (
	// clusterInterval is how often the nodes are asked who has which slots although all
	// goes well; else those that have not say so.
	clusterInterval = 30 * time.Second

	// maxHops is how often a call follows the nodes' directions.
	maxHops = 5

	// hopPause is before a call is repeated that no node would take.
	hopPause = 5 * time.Millisecond
)

// cluster is a Redis Cluster: a table says which node has a slot.
type cluster struct {
	*lanes
	scout *scout
	seeds []string
	table [slots]atomic.Pointer[lane]
}

func newCluster(seeds []string, nodes *lanes, timeout time.Duration) *cluster {
	c := &cluster{lanes: nodes, seeds: seeds}
	c.scout = newScout(clusterInterval, timeout, c.look)
	return c
}

func (c *cluster) lane(ctx context.Context, slot uint16) (*lane, error) {
	if l := c.table[slot].Load(); l != nil {
		return l, nil
	}
	if err := c.scout.wait(ctx); err != nil {
		return nil, err
	}
	l := c.table[slot].Load()
	if l == nil {
		c.suspect()
		return nil, fmt.Errorf("no node of the cluster serves slot %d", slot)
	}
	return l, nil
}

func (c *cluster) suspect() { c.scout.poke() }

func (c *cluster) masters() (all []*lane) {
	for slot := range c.table {
		// Slots come in long ranges.
		if l := c.table[slot].Load(); l != nil && (len(all) == 0 || !slices.Contains(all, l)) {
			all = append(all, l)
		}
	}
	return all
}

func (c *cluster) close() error {
	c.scout.close()
	return c.lanes.close()
}

// look asks all nodes that are known for the slots, and believes the first answer: who
// is sent to the wrong node is told so by it.
func (c *cluster) look(ctx context.Context) error {
	nodes := c.all()
	for _, seed := range c.seeds {
		l, err := c.to(seed)
		if err != nil {
			return err
		}
		nodes = append(nodes, l)
	}
	type answer struct {
		from   *lane
		ranges []redis.ClusterSlot
		err    error
	}
	answers := make(chan answer, len(nodes))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, l := range nodes {
		go func() {
			//lint:ignore SA1019 CLUSTER SHARDS is new in Redis 7, and 6.2 must do
			ranges, err := l.client.ClusterSlots(ctx).Result()
			if err == nil && len(ranges) == 0 {
				err = errors.New("it knows of no slots")
			}
			answers <- answer{l, ranges, err}
		}()
	}
	var errs []error
	for range nodes {
		a := <-answers
		if a.err == nil {
			return c.take(a.from, a.ranges)
		}
		errs = append(errs, fmt.Errorf("%s: %w", a.from.address, a.err))
	}
	return fmt.Errorf("no node of the cluster says who serves what: %w", errors.Join(errs...))
}

// take writes the table.
func (c *cluster) take(from *lane, ranges []redis.ClusterSlot) error {
	for _, r := range ranges {
		if len(r.Nodes) == 0 || r.Start < 0 || r.End >= slots {
			continue
		}
		l, err := c.to(beside(from.address, r.Nodes[0].Addr))
		if err != nil {
			return err
		}
		for slot := r.Start; slot <= r.End; slot++ {
			if c.table[slot].Load() != l {
				c.table[slot].Store(l)
			}
		}
	}
	c.retire()
	return nil
}

// beside completes the address of a node without a host, which means the host that said
// so.
func beside(from, address string) string {
	host, port, err := net.SplitHostPort(address)
	if err == nil && host != "" && host != "?" {
		return address
	}
	if err != nil {
		port = address[strings.LastIndexByte(address, ':')+1:]
	}
	host, _, _ = net.SplitHostPort(from)
	return net.JoinHostPort(host, port)
}

// follow repeats what a node has refused because the slot is elsewhere or on its way,
// where the nodes say, as long as ctx lasts. Nothing of that has been carried out.
func (c *cluster) follow(ctx context.Context, slot uint16, err error, again func(l *lane, asking bool) error) error {
	for hop := 1; err != nil && hop <= maxHops; hop++ {
		moved, isMoved := redis.IsMovedError(err)
		asked, isAsk := redis.IsAskError(err)
		closed := errors.Is(err, store.ErrClosed) // a node that no longer belongs
		if !isMoved && !isAsk && !closed && !redis.IsClusterDownError(err) {
			return err
		}
		c.suspect()
		var l *lane
		var lost error
		switch {
		case isMoved:
			if l, lost = c.to(c.complete(slot, moved)); lost == nil {
				c.table[slot].Store(l)
			}
		case isAsk:
			l, lost = c.to(c.complete(slot, asked))
		default:
			if pause(ctx, time.Duration(hop)*hopPause) != nil {
				return err
			}
			l, lost = c.lane(ctx, slot)
		}
		if lost != nil {
			return unsentError{lost}
		}
		err = again(l, isAsk)
	}
	return err
}

func (c *cluster) complete(slot uint16, address string) string {
	if from := c.table[slot].Load(); from != nil {
		return beside(from.address, address)
	}
	return address
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
