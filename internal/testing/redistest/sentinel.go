package redistest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// MasterName is what the Sentinels of [StartSentinel] call their master.
const MasterName = "limits"

// failoverTimeout is when Sentinels give up a failover.
const failoverTimeout = 3 * time.Second

// Sentinel is a master and a replica under three Sentinels. Two of them have to agree that the
// master is down, which takes a second.
type Sentinel struct {
	t         TB
	servers   []*Server
	sentinels []*Server
}

// StartSentinel starts a master, a replica and three Sentinels, and waits until all of them know
// each other. The options of forServers and of forSentinels are those of [Start]; if one has TLS,
// all must.
func StartSentinel(t TB, forServers, forSentinels []Option) *Sentinel {
	t.Helper()
	Require(t)
	g := &Sentinel{t: t}
	forServers = together(t, forServers)
	all, own := settled(forServers), settled(forSentinels)
	if all.password != "" {
		forServers = append(forServers, WithArgs("--masterauth", all.password))
	}
	forServers = append(forServers, WithArgs("--repl-diskless-sync-delay", "0"))
	master := Start(t, forServers...)
	replica := Start(t, append(slices.Clip(forServers), WithArgs("--replicaof", "127.0.0.1", strconv.Itoa(master.ownPort())))...)
	g.servers = []*Server{master, replica}

	lines := []string{
		fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", MasterName, master.ownPort()),
		"sentinel down-after-milliseconds " + MasterName + " 1000",
		fmt.Sprintf("sentinel failover-timeout %s %d", MasterName, failoverTimeout.Milliseconds()),
	}
	if all.password != "" {
		lines = append(lines, "sentinel auth-pass "+MasterName+" "+all.password)
	}
	if own.password != "" {
		lines = append(lines, "sentinel sentinel-pass "+own.password)
	}
	forSentinels = append(slices.Clip(forSentinels), func(s *settings) { s.sentinel = lines })
	if own.tls {
		forSentinels = append(forSentinels, func(s *settings) { s.certs = all.certs }, WithArgs("--tls-replication", "yes"))
	}
	for range 3 {
		sentinel := Start(t, forSentinels...)
		// For Redis 7 and later. Older ones take a few seconds more.
		_ = sentinel.admin.Do(context.Background(), "sentinel", "debug", "info-period", 200, "publish-period", 200, "ask-period", 200).Err()
		g.sentinels = append(g.sentinels, sentinel)
	}
	g.Await()
	return g
}

// Servers returns the two servers with data: at first the master and its replica.
func (g *Sentinel) Servers() []*Server { return g.servers }

// Sentinels returns the three Sentinels.
func (g *Sentinel) Sentinels() []*Server { return g.sentinels }

// Addrs returns the addresses of the Sentinels, with [WithTLS] those for TLS.
func (g *Sentinel) Addrs() []string { return addrs(g.sentinels) }

// Master returns the server that all running Sentinels name, once it is a master.
func (g *Sentinel) Master() *Server {
	g.t.Helper()
	var master *Server
	await(g.t, "sentinel", func(ctx context.Context) (err error) {
		master, err = g.master(ctx)
		return err
	})
	return master
}

func (g *Sentinel) master(ctx context.Context) (*Server, error) {
	var named string
	for _, sentinel := range g.sentinels {
		if sentinel.current().Ended() {
			continue
		}
		address, err := sentinel.admin.Do(ctx, "sentinel", "get-master-addr-by-name", MasterName).StringSlice()
		if err != nil {
			return nil, err
		}
		if named != "" && named != address[1] {
			return nil, fmt.Errorf("one sentinel says port %s, another %s", named, address[1])
		}
		named = address[1]
	}
	for _, server := range g.servers {
		if strconv.Itoa(server.ownPort()) == named {
			return server, server.hasInfo(ctx, "info", "replication", "role:master\r")
		}
	}
	return nil, fmt.Errorf("no server has port %q", named)
}

// Await waits until the replica has all data, and all Sentinels know it and each other.
func (g *Sentinel) Await() {
	g.t.Helper()
	await(g.t, "sentinel", func(ctx context.Context) error {
		master, err := g.master(ctx)
		if err != nil {
			return err
		}
		for _, server := range g.servers {
			if server != master {
				if err := server.hasInfo(ctx, "info", "replication", "master_link_status:up\r"); err != nil {
					return err
				}
			}
		}
		for _, sentinel := range g.sentinels {
			cmd := redis.NewMapStringStringCmd(ctx, "sentinel", "master", MasterName)
			if err := sentinel.admin.Process(ctx, cmd); err != nil {
				return err
			}
			if known := cmd.Val(); known["num-slaves"] == "0" || known["num-other-sentinels"] != "2" || known["flags"] != "master" {
				return fmt.Errorf("%s does not know all: %v", sentinel.Addr(), known)
			}
		}
		return nil
	})
}

// Failover has the Sentinels make the replica the master, although the master is well, and
// returns when they agree.
func (g *Sentinel) Failover() {
	g.t.Helper()
	before := g.Master()
	asked := time.Time{}
	await(g.t, "sentinel", func(ctx context.Context) error {
		// Sentinels give up a failover that takes too long, as on a busy machine.
		err := g.switched(ctx, before)
		if err != nil && time.Since(asked) > 2*failoverTimeout {
			if err := g.sentinels[0].admin.Do(ctx, "sentinel", "failover", MasterName).Err(); err != nil {
				return err
			}
			asked = time.Now()
		}
		return err
	})
}

// switched returns nil when another server than before is the master.
func (g *Sentinel) switched(ctx context.Context, before *Server) error {
	now, err := g.master(ctx)
	if err == nil && now == before {
		err = fmt.Errorf("%s is still the master", now.Addr())
	}
	return err
}

// AwaitSwitch returns when another server than before is the master.
func (g *Sentinel) AwaitSwitch(before *Server) *Server {
	g.t.Helper()
	await(g.t, "sentinel", func(ctx context.Context) error { return g.switched(ctx, before) })
	return g.Master()
}
