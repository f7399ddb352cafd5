package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
)

const (
	// clusterInterval is how often the nodes are asked which node has which slots if no call
	// fails. In between, nodes redirect calls for slots that they do not have.
	clusterInterval = 30 * time.Second

	// clusterPatience is how long other nodes have after the first answer, which may come from
	// one that is cut off from them.
	clusterPatience = 100 * time.Millisecond

	// maxHops is how often a call follows the nodes' directions.
	maxHops = 5

	// hopPause is the pause before a call is repeated that no node took, and longer each time.
	hopPause = 5 * time.Millisecond
)

// Cluster is a Redis Cluster: a table says which node has a slot.
type Cluster struct {
	nodes
	*discovery
	seeds []string
	table [Slots]atomic.Pointer[node.Node]
	known bool // there is a table; only refresh uses it

	// Patience is how long other nodes have after the first answer. A test may set another
	// before the first call.
	Patience time.Duration
}

// NewCluster returns the topology of a Cluster, some nodes of which are at these addresses.
func NewCluster(seeds []string, config *node.Config, logger func() *zap.Logger) *Cluster {
	c := &Cluster{nodes: nodes{config: config}, seeds: seeds, Patience: clusterPatience}
	c.discovery = newDiscovery(clusterInterval, config.Timeout, logger, c.refresh)
	return c
}

// Slot implements [Topology].
func (c *Cluster) Slot(key string) uint16 { return SlotOf(key) }

// Node implements [Topology].
func (c *Cluster) Node(ctx context.Context, slot uint16) (*node.Node, error) {
	if n := c.Owner(slot); n != nil {
		return n, nil
	}
	if err := c.wait(ctx); err != nil {
		return nil, err
	}
	n := c.Owner(slot)
	if n == nil {
		c.ReportFailure()
		return nil, fmt.Errorf("no node of the cluster serves slot %d", slot)
	}
	return n, nil
}

// Owner returns the node that has a slot, as far as is known; nil if none is known.
func (c *Cluster) Owner(slot uint16) *node.Node { return c.table[slot].Load() }

// Masters implements [Topology].
func (c *Cluster) Masters() (all []*node.Node) {
	for slot := range c.table {
		// Slots come in long ranges.
		if n := c.table[slot].Load(); n != nil && (len(all) == 0 || !slices.Contains(all, n)) {
			all = append(all, n)
		}
	}
	return all
}

// Close implements [Topology].
func (c *Cluster) Close() error {
	return c.discovery.close(c.nodes.close)
}

// Redirect implements [Topology]: it follows what the nodes say, as long as ctx lasts. Nothing
// has been carried out of a call that was refused in this way.
func (c *Cluster) Redirect(ctx context.Context, from *node.Node, slot uint16, err error, hop int) (to *node.Node, asking bool, _ error) {
	if !node.Elsewhere(err) {
		return nil, false, err
	}
	c.ReportFailure()
	moved, isMoved := redis.IsMovedError(err)
	asked, isAsk := redis.IsAskError(err)
	if hop > maxHops {
		if (isMoved || isAsk) && readName(moved+asked).unknown() {
			err = node.WithAdvice(err, advice.NameHosts)
		}
		return nil, false, err
	}
	// Where two nodes name each other for a moment, at the end of a slot's move, all hops would take a millisecond.
	if (isMoved && hop > 1 || !isMoved && !isAsk) && pause(ctx, time.Duration(hop)*hopPause) != nil {
		return nil, false, err
	}
	var lost error
	sure := false
	if isMoved || isAsk {
		to, sure, lost = c.sentTo(from, slot, moved+asked, hop)
	} else { // a node that no longer belongs, a Cluster that is down, or keys of a slot that moves
		to, lost = c.Node(ctx, slot)
	}
	if lost != nil {
		return nil, false, node.Unsent(lost)
	}
	if isMoved && sure {
		c.table[slot].Store(to)
	}
	return to, isAsk, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refresh asks all known nodes for the slots, and believes most of them: see [election]. A node that
// hangs delays nothing for longer than Patience.
func (c *Cluster) refresh() error {
	all := c.all()
	for _, seed := range c.seeds {
		n, err := c.at(seed)
		if err != nil {
			return err
		}
		if !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	patience := c.Patience
	if !c.known {
		patience = min(patience, c.timeout/5) // requests wait
	}
	questions := make([]question[ballot], len(all))
	for i, n := range all {
		questions[i] = question[ballot]{n.Address, func(ctx context.Context) (ballot, error) {
			answer, err := n.Slots(ctx)
			if err != nil {
				return ballot{}, err
			}
			ranges, err := readSlots(n.Address, answer)
			for _, r := range ranges {
				if r.instead != "" {
					c.config.Instead.Store(r.address, r.instead)
				}
			}
			return ballot{n, ranges}, err
		}}
	}
	ballots, errs := survey(c.discovery, patience, questions)
	if len(ballots) == 0 {
		return fmt.Errorf("no node of the cluster answers which node has which slots: %w", errors.Join(errs...))
	}
	if !c.known && len(ballots)+len(errs) < len(all) {
		c.ReportFailure() // it looks again, with more patience
	}
	return c.write(&election{ballots})
}

// write writes the table.
func (c *Cluster) write(e *election) error {
	var last *node.Node // slots come in long ranges
	for slot, address := range e.result(func(slot int) *node.Node { return c.table[slot].Load() }) {
		if address == "" {
			continue
		}
		if last == nil || last.Address != address {
			n, err := c.at(address)
			if err != nil {
				return err
			}
			last = n
		}
		if c.table[slot].Load() != last {
			c.table[slot].Store(last)
		}
	}
	c.known = true
	c.retire()
	return nil
}

var (
	_ Topology = Single{}
	_ Topology = (*Sentinel)(nil)
	_ Topology = (*Cluster)(nil)
)
