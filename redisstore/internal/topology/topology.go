// Package topology knows which Redis has a key: a single one, the master that Sentinels name,
// or the node of a Cluster.
//
// The connections are those of go-redis. Its FailoverClient and ClusterClient would know that, too. They were measured
// in place of this package and of package node: version 9.23, with its defaults, on a machine with two processors.
// Calls had 50 ms, and the servers were on the same machine.
//
//   - One request at a time is as fast with them. With 16 or 64 at once, they make 40,000 decisions a second. Here it is
//     120,000 or 150,000 with Sentinels, and 70,000 or 100,000 with three nodes: batches are of one server, which
//     these clients hide.
//   - After SENTINEL FAILOVER, both go on within 50 ms. After the master was killed, it takes 2 s here and 2.5 s there.
//     After it was frozen, it takes 3 s and 7 s.
//   - If one of three Sentinels hangs, the first decision takes 0.1 s here and 5 s there, because that client waits for
//     all of them. Then it believes the one that answered first.
//   - If a node of a Cluster with replicas is killed or frozen, its slots go on after 4 s here. There they had not
//     after 30 s, or with a ClusterStateReloadInterval of 1 s, after 4.5 s. It asks one node after the other, and
//     believes the first that answers: it may be cut off from the others.
//   - A call whose reply is lost is made once here. There it was made three times, by the ClusterClient with MaxRetries -1
//     too, unless the command says NoRetry. The same holds for a pipeline.
//   - No call fails on either side while a slot moves, also in a pipeline.
package topology

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Topology knows which Redis has a key.
type Topology interface {
	// Slot returns the slot of a key. Where one Redis has all keys, they have one slot.
	Slot(key string) uint16

	// Node returns the one that has a slot's keys.
	Node(ctx context.Context, slot uint16) (*node.Node, error)

	// Redirect says where a call is to be made again that failed with an error, if the node it came
	// from refused it because another node is to be asked, or the same one a moment later. Asking
	// is for a slot that is about to become that node's own. Without such a node it returns
	// the error that is left. Hop counts the times that the call was made, from 1.
	Redirect(ctx context.Context, from *node.Node, slot uint16, err error, hop int) (to *node.Node, asking bool, _ error)

	// ReportFailure says that a node failed: another may have taken its place.
	ReportFailure()

	// Silent are the servers that do not say where the states are.
	Silent() []store.Silence

	// Masters are the nodes that are asked at present.
	Masters() []*node.Node

	// Close closes all connections.
	Close() error
}

// Single is a Redis that has no other to take its place.
type Single struct{ node *node.Node }

// NewSingle returns the topology of one Redis.
func NewSingle(n *node.Node) Single { return Single{n} }

// Slot implements [Topology].
func (s Single) Slot(string) uint16 { return 0 }

// Node implements [Topology].
func (s Single) Node(context.Context, uint16) (*node.Node, error) { return s.node, nil }

// Redirect implements [Topology].
func (s Single) Redirect(_ context.Context, _ *node.Node, _ uint16, err error, _ int) (*node.Node, bool, error) {
	return nil, false, err
}

// ReportFailure implements [Topology].
func (s Single) ReportFailure() {}

// Silent implements [Topology]: nobody is asked.
func (s Single) Silent() []store.Silence { return nil }

// Masters implements [Topology].
func (s Single) Masters() []*node.Node { return []*node.Node{s.node} }

// Close implements [Topology].
func (s Single) Close() error { return s.node.Close() }

// nodes are all servers of a topology, by address.
type nodes struct {
	config *node.Config

	mu        sync.Mutex
	byAddress map[string]*member
	closed    bool
}

// member is a node, and when it was last named as belonging to the topology.
type member struct {
	*node.Node
	named time.Time
}

// retireAfter is how long a server is remembered that no longer belongs.
const retireAfter = time.Minute

// at returns the node at an address.
func (s *nodes) at(address string) (*node.Node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	m := s.byAddress[address]
	if m == nil {
		m = &member{Node: node.New(address, s.config)}
		if s.byAddress == nil {
			s.byAddress = make(map[string]*member)
		}
		s.byAddress[address] = m
	}
	m.named = time.Now()
	return m.Node, nil
}

// all returns the nodes that are known, by address.
func (s *nodes) all() (all []*node.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.byAddress {
		all = append(all, m.Node)
	}
	slices.SortFunc(all, func(a, b *node.Node) int { return strings.Compare(a.Address, b.Address) })
	return all
}

// retire closes the nodes that have not been named for long.
func (s *nodes) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for address, m := range s.byAddress {
		if time.Since(m.named) > retireAfter {
			delete(s.byAddress, address)
			_ = m.Close()
		}
	}
}

func (s *nodes) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	if !s.closed {
		for _, m := range s.byAddress {
			errs = append(errs, m.Close())
		}
	}
	s.closed = true
	return errors.Join(errs...)
}
