// Package topology knows which Redis has a key: a single one, the master that Sentinels name,
// or the node of a Cluster.
//
// The connections are those of go-redis. Its FailoverClient and ClusterClient would know that, too. They were measured
// instead of this package and of package node: version 9.23, with its defaults, on a machine with two processors.
// Calls had 50 ms, and the servers were on the same machine.
//
//   - One request at a time is as fast with them. With 16 or 64 at once, they make 40,000 decisions a second. Here it is
//     120,000 or 150,000 with Sentinels, and 70,000 or 100,000 with three nodes: batches are of one server, which
//     these clients hide.
//   - After SENTINEL FAILOVER, that client goes on within 50 ms. Here it takes up to a second, because nobody subscribes to
//     the Sentinels. After the master was killed, it takes 2 s here and 2.5 s there. After it was frozen, it takes 3 s and 7 s.
//   - If one of three Sentinels hangs, the first decision takes 0.1 s here and 5 s there, because that client waits for
//     all of them. Then it believes the one that answered first.
//   - If a node of a Cluster with replicas is killed or frozen, its slots go on after 4 s here. There they had not
//     after 30 s, or with a ClusterStateReloadInterval of 1 s, after 4.5 s. It asks one node after the other, and
//     believes the first that answers: it may be cut off from the others.
//   - A call whose reply is lost is made once here. There it was made three times, by the ClusterClient with MaxRetries -1
//     too, unless the command says NoRetry. The same holds for a pipeline.
//   - No call of one key fails on either side while a slot moves, also in a pipeline.
package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Topology knows which Redis has a key: a table says which node has a slot. Unless it is fixed, surveys write it.
type Topology struct {
	nodes
	silences
	table []atomic.Pointer[node.Node] // of one slot if one Redis has all keys

	questions func() ([]question, error) // of a survey
	explain   func(err error) error      // says what is missing if no server answers
	every     time.Duration              // how often there is a survey
	timeout   time.Duration              // of a call that waits for the first one
	epoch     int64                      // of the table; only surveys use it
	complete  bool                       // all servers have answered the last one

	start     sync.Once
	found     chan struct{} // closed after the first survey that succeeded
	triggered chan struct{}
	failed    atomic.Pointer[error] // why the last survey failed
	quit      context.CancelFunc
	quitting  context.Context
	running   sync.WaitGroup
}

// NewFixed returns the topology of one node that has all slots, and no other to take its place. It is one slot, unless
// a test wants those of a Cluster.
func NewFixed(n *node.Node, slots int) *Topology {
	t := newTopology(slots, new(node.Config))
	t.byAddress[n.Address] = &member{Node: n}
	t.take(n, 0, slots-1)
	return t
}

func newTopology(slots int, config *node.Config) *Topology {
	t := &Topology{table: make([]atomic.Pointer[node.Node], slots), timeout: config.Timeout}
	t.nodes = nodes{config: config, byAddress: make(map[string]*member)}
	t.silences.of = make(map[string]silence)
	t.failed.Store(new(error))
	t.found, t.triggered = make(chan struct{}), make(chan struct{}, 1)
	t.quitting, t.quit = context.WithCancel(context.Background())
	return t
}

// OneSlot reports whether one Redis has all keys: then they have one slot, which is 0.
func (t *Topology) OneSlot() bool { return len(t.table) == 1 }

// Slot returns the slot of a key.
func (t *Topology) Slot(key string) uint16 {
	if t.OneSlot() {
		return 0
	}
	return SlotOf(key)
}

// Node returns the one that has a slot's keys.
func (t *Topology) Node(ctx context.Context, slot uint16) (*node.Node, error) {
	if n := t.owner(slot); n != nil {
		return n, nil
	}
	if err := t.wait(ctx); err != nil {
		return nil, err
	}
	n := t.owner(slot)
	if n == nil {
		t.ReportFailure()
		return nil, fmt.Errorf("no node of the cluster serves slot %d", slot)
	}
	return n, nil
}

// owner returns the node that has a slot, as far as is known; nil if none is known.
func (t *Topology) owner(slot uint16) *node.Node { return t.table[slot].Load() }

// take has a node own the slots from first to last. It reports whether one is new to it.
func (t *Topology) take(n *node.Node, first, last int) (is bool) {
	for slot := first; slot <= last; slot++ {
		if t.table[slot].Load() != n {
			t.table[slot].Store(n)
			is = true
		}
	}
	return is
}

// Masters are the nodes that are asked at present.
func (t *Topology) Masters() (all []*node.Node) {
	for slot := range t.table {
		// Slots come in long ranges.
		if n := t.table[slot].Load(); n != nil && (len(all) == 0 || !slices.Contains(all, n)) {
			all = append(all, n)
		}
	}
	return all
}

// Close closes all connections, and returns when nobody is asked any more. It closes them before it waits, because
// reading from a server that hangs ends only then.
func (t *Topology) Close() error {
	t.quit()
	t.start.Do(func() {}) // or it would start now
	err := t.nodes.close()
	t.running.Wait()
	return err
}

// nodes are all servers of a topology, by address.
type nodes struct {
	config    *node.Config
	sentinels []*redis.Client

	lock      sync.Mutex
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
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	m := s.byAddress[address]
	if m == nil {
		m = &member{Node: node.New(address, s.config)}
		s.byAddress[address] = m
	}
	m.named = time.Now()
	return m.Node, nil
}

// all returns the nodes that are known, by address.
func (s *nodes) all() (all []*node.Node) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, m := range s.byAddress {
		all = append(all, m.Node)
	}
	slices.SortFunc(all, func(a, b *node.Node) int { return strings.Compare(a.Address, b.Address) })
	return all
}

// retire closes the nodes that have not been named for long.
func (s *nodes) retire() {
	s.lock.Lock()
	defer s.lock.Unlock()
	for address, m := range s.byAddress {
		if time.Since(m.named) > retireAfter {
			delete(s.byAddress, address)
			_ = m.Close()
		}
	}
}

func (s *nodes) close() error {
	s.lock.Lock()
	defer s.lock.Unlock()
	var errs []error
	if !s.closed {
		for _, m := range s.byAddress {
			errs = append(errs, m.Close())
		}
		for _, client := range s.sentinels {
			errs = append(errs, client.Close())
		}
	}
	s.closed = true
	return errors.Join(errs...)
}
