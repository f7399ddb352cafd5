package redistest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

const (
	// slots is how many slots a Cluster has.
	slots = 16384

	// nodeTimeout is after how many milliseconds the nodes of a Cluster treat a node as failing.
	nodeTimeout = "2000"
)

// Cluster is a running Redis Cluster. Its nodes may be killed, frozen and restarted like
// any [Server].
type Cluster struct {
	t     TB
	nodes []*Server
	ids   map[*Server]string
}

// StartCluster starts a Cluster of masters, each with some replicas, and waits until all nodes
// agree that it is well. The masters have equal ranges of slots, in order, and come first among
// the nodes. A master that is away for two seconds is replaced by a replica. Without a replica
// its slots are down, and the others go on.
func StartCluster(t TB, masters, replicasEach int, options ...Option) *Cluster {
	t.Helper()
	Require(t)
	options = append(together(t, options), WithArgs(
		"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", nodeTimeout,
		"--cluster-require-full-coverage", "no", "--cluster-replica-validity-factor", "0",
		"--repl-diskless-sync-delay", "0",
	))
	c := &Cluster{t: t, ids: make(map[*Server]string)}
	for range masters * (1 + replicasEach) {
		node := Start(t, options...)
		id, err := node.admin.Do(context.Background(), "cluster", "myid").Text()
		if err != nil {
			t.Fatal(err)
		}
		c.nodes, c.ids[node] = append(c.nodes, node), id
	}
	for i, node := range c.nodes[:masters] {
		c.must(node, "cluster", "set-config-epoch", i+1)
		args := []any{"cluster", "addslots"}
		for slot := i * slots / masters; slot < (i+1)*slots/masters; slot++ {
			args = append(args, slot)
		}
		c.must(node, args...)
	}
	c.meet()
	for i, node := range c.nodes[masters:] {
		master := c.nodes[i%masters]
		await(c.t, "cluster", func(ctx context.Context) error {
			return node.admin.Do(ctx, "cluster", "replicate", c.ids[master]).Err()
		})
	}
	c.Await()
	return c
}

// meet makes all nodes know each other.
func (c *Cluster) meet() {
	for _, one := range c.nodes {
		for _, other := range c.nodes {
			if one != other {
				c.must(one, "cluster", "meet", other.host(), other.ownPort())
			}
		}
	}
	await(c.t, "cluster", func(ctx context.Context) error {
		for _, node := range c.nodes {
			if err := node.hasInfo(ctx, "cluster", "info", fmt.Sprintf("cluster_known_nodes:%d\r", len(c.nodes))); err != nil {
				return err
			}
		}
		return nil
	})
}

// Nodes returns all nodes.
func (c *Cluster) Nodes() []*Server { return c.nodes }

// Addrs returns the addresses of all nodes, with [WithTLS] those for TLS.
func (c *Cluster) Addrs() []string { return addrs(c.nodes) }

// Await waits until every running node can reach every slot, and knows the replicas that the
// masters can have.
func (c *Cluster) Await() {
	c.t.Helper()
	await(c.t, "cluster", func(ctx context.Context) error {
		for _, node := range c.nodes {
			if node.current().Ended() {
				continue
			}
			for _, want := range []string{"cluster_state:ok\r", fmt.Sprintf("cluster_slots_ok:%d\r", slots)} {
				if err := node.hasInfo(ctx, "cluster", "info", want); err != nil {
					return err
				}
			}
			info := node.admin.Info(ctx, "replication").Val()
			if !strings.Contains(info, "role:master\r") && !strings.Contains(info, "master_link_status:up\r") {
				return fmt.Errorf("%s: the link to its master is not up", node.Addr())
			}
		}
		return nil
	})
}

// MasterOf returns the node that serves a key, according to the nodes that run.
func (c *Cluster) MasterOf(key string) *Server {
	c.t.Helper()
	var master *Server
	await(c.t, "cluster", func(ctx context.Context) error {
		for _, node := range c.nodes {
			if !node.current().Ended() && node.admin.Do(ctx, "exists", key).Err() == nil &&
				node.hasInfo(ctx, "info", "replication", "role:master\r") == nil {
				master = node
				return nil
			}
		}
		return fmt.Errorf("no node serves %q", key)
	})
	return master
}

// SlotOf returns the slot of a key.
func (c *Cluster) SlotOf(key string) int {
	c.t.Helper()
	slot, err := c.nodes[0].admin.ClusterKeySlot(context.Background(), key).Result()
	if err != nil {
		c.t.Fatal(err)
	}
	return int(slot)
}

// Migration is a slot on its way from one master to another.
type Migration struct {
	c        *Cluster
	slot     int
	from, to *Server
}

// StartMove begins to move a slot, as resharding does: the old node keeps the keys that it has,
// and sends clients to the new one (ASK) for keys that it has not.
func (c *Cluster) StartMove(slot int, from, to *Server) *Migration {
	c.t.Helper()
	c.must(to, "cluster", "setslot", slot, "importing", c.ids[from])
	c.must(from, "cluster", "setslot", slot, "migrating", c.ids[to])
	return &Migration{c, slot, from, to}
}

// MoveKeys moves the keys that the slot has now.
func (m *Migration) MoveKeys() {
	m.c.t.Helper()
	for {
		keys, err := m.from.admin.ClusterGetKeysInSlot(context.Background(), m.slot, 100).Result()
		if err != nil {
			m.c.t.Fatal(err)
		}
		if len(keys) == 0 {
			return
		}
		args := []any{"migrate", m.to.host(), m.to.ownPort(), "", 0, 5000, "keys"}
		for _, key := range keys {
			args = append(args, key)
		}
		m.c.must(m.from, args...)
	}
}

// Finish gives the slot to the new node.
func (m *Migration) Finish() {
	m.c.t.Helper()
	m.MoveKeys()
	for _, node := range []*Server{m.to, m.from} {
		m.c.must(node, "cluster", "setslot", m.slot, "node", m.c.ids[m.to])
	}
	for _, node := range m.c.nodes { // so that the other masters know it at once; the rest refuse it
		node.admin.Do(context.Background(), "cluster", "setslot", m.slot, "node", m.c.ids[m.to])
	}
}

// must sends a command to a node, which must succeed.
func (c *Cluster) must(node *Server, args ...any) {
	c.t.Helper()
	if err := node.admin.Do(context.Background(), args...).Err(); err != nil {
		c.t.Fatalf("%s: %v: %v", node.Addr(), args[:min(3, len(args))], err)
	}
}

// together adds options for servers that talk to each other: they trust one authority, encrypt
// their connections if clients do, and know the password.
func together(t TB, options []Option) []Option {
	t.Helper()
	if !settled(options).tls {
		return slices.Clip(options)
	}
	common := Certificate(t)
	return append(slices.Clip(options), func(s *settings) { s.certs = common }, WithArgs("--tls-replication", "yes"))
}

// ownPort returns the port at which other servers find this one.
func (s *Server) ownPort() int {
	if s.tlsPort != 0 {
		return s.tlsPort
	}
	return s.port
}

// hasInfo returns nil if the answer to a command of two words contains a text.
func (s *Server) hasInfo(ctx context.Context, one, two, text string) error {
	answer, err := s.admin.Do(ctx, one, two).Text()
	if err == nil && !strings.Contains(answer, text) {
		err = fmt.Errorf("%s: %s %s has no %q", s.Addr(), one, two, text)
	}
	return err
}

func addrs(servers []*Server) (all []string) {
	for _, s := range servers {
		all = append(all, cmp.Or(s.TLSAddr(), s.Addr()))
	}
	return all
}
