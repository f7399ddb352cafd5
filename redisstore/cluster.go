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
)

const (
	// clusterInterval is how often the nodes are asked who has which slots although all
	// goes well; else those that have not say so.
	clusterInterval = 30 * time.Second

	// clusterPatience is how long other nodes have after the first one's answer. It may be
	// one that is cut off from them.
	clusterPatience = 100 * time.Millisecond
)

// cluster is a Redis Cluster: a table says which node has a slot.
type cluster struct {
	*lanes
	scout *scout
	seeds []string
	table [slots]atomic.Pointer[lane]
	known bool // there is a table; only look uses it

	// patience is how long other nodes have after the first answer to a look; a test may
	// set another before the first one.
	patience time.Duration
}

func newCluster(seeds []string, nodes *lanes, timeout time.Duration) *cluster {
	c := &cluster{lanes: nodes, seeds: seeds, patience: clusterPatience}
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

// look asks all nodes that are known for the slots, and believes most of them: see
// [election]. Once one has answered, the others have a moment. One that hangs holds up
// nobody for longer.
func (c *cluster) look(ctx context.Context) error {
	nodes := c.all()
	for _, seed := range c.seeds {
		l, err := c.to(seed)
		if err != nil {
			return err
		}
		if !slices.Contains(nodes, l) {
			nodes = append(nodes, l)
		}
	}
	answers := make(chan ballot, len(nodes))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, l := range nodes {
		go func() { answers <- l.vote(ctx) }()
	}
	var e election
	var errs []error
	patience := c.patience
	if !c.known {
		patience = min(patience, c.scout.timeout/5) // requests wait
	}
	var late <-chan time.Time
	for waiting := len(nodes); waiting > 0; waiting-- {
		select {
		case a := <-answers:
			if a.err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", a.from.address, a.err))
				continue
			}
			e.ballots = append(e.ballots, a)
			if late == nil {
				late = time.After(patience)
			}
		case <-late:
			waiting = 1
		}
	}
	if len(e.ballots) == 0 {
		return fmt.Errorf("no node of the cluster says who serves what: %w", errors.Join(errs...))
	}
	if !c.known && len(e.ballots)+len(errs) < len(nodes) {
		c.suspect() // it looks again, with more patience
	}
	return c.take(&e)
}

// take writes the table.
func (c *cluster) take(e *election) error {
	var last *lane // slots come in long ranges
	for slot, address := range e.result(func(slot int) *lane { return c.table[slot].Load() }) {
		if address == "" {
			continue
		}
		if last == nil || last.address != address {
			l, err := c.to(address)
			if err != nil {
				return err
			}
			last = l
		}
		if c.table[slot].Load() != last {
			c.table[slot].Store(last)
		}
	}
	c.known = true
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
