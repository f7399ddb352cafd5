package world

import (
	"fmt"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/simredis"
	"github.com/seed-161337e5/caddyratelimit/redisstore"
)

// Layout is what there is of Redis, and how instances find it.
type Layout string

// The layouts. Whatever there is, one server is the master that troubles meet, see [world.host].
const (
	Single    Layout = ""          // one server, whose address may lead to another one
	Sentinels Layout = "Sentinels" // two servers, and three Sentinels that say which of them is the master
	Cluster   Layout = "Cluster"   // three masters with a third of the slots each, and a spare server
)

const (
	singleAddress   = "redis:6379"
	serverAddress   = "r%d:6379" // of several
	sentinelAddress = "s%d:26379"
	masterName      = "limits"
	masters         = 3 // of a Cluster
	sentinels       = 3
)

// numbered are the addresses of several hosts.
func numbered(format string, hosts int) (all []string) {
	for i := range hosts {
		all = append(all, fmt.Sprintf(format, i))
	}
	return all
}

// options are those of an instance's store: where it looks for Redis.
func (l Layout) options() redisstore.Options {
	switch l {
	case Sentinels:
		return redisstore.Options{Mode: redisstore.ModeSentinel, MasterName: masterName, Addresses: numbered(sentinelAddress, sentinels)}
	case Cluster:
		return redisstore.Options{Mode: redisstore.ModeCluster, Addresses: numbered(serverAddress, masters)}
	}
	return redisstore.Options{Address: singleAddress}
}

// build starts the servers.
func (w *world) build() {
	hosts := func(addresses ...string) (all []*host) {
		for _, address := range addresses {
			all = append(all, newHost(w, address))
		}
		return all
	}
	switch w.plan.Layout {
	case Sentinels:
		w.servers, w.watchers = hosts(numbered(serverAddress, 2)...), hosts(numbered(sentinelAddress, sentinels)...)
		w.servers[1].demoted = true
		for _, s := range w.watchers {
			s.sentinel = &simredis.Sentinel{Name: masterName, Master: w.servers[0].address}
		}
	case Cluster:
		w.table = new(simredis.Table)
		w.servers = hosts(numbered(serverAddress, masters+1)...)
		for i, h := range w.servers {
			h.redis.View = simredis.NewView(h.address, w.table)
			if h.demoted = i == masters; !h.demoted {
				first, behind := i*simredis.Slots/masters, (i+1)*simredis.Slots/masters
				w.table.Ranges = append(w.table.Ranges, simredis.Range{First: first, Last: behind - 1, Owner: h.address})
			}
		}
	default:
		w.servers = hosts(singleAddress)
	}
	if w.host = w.servers[0]; w.table != nil {
		w.host = w.ownerOf(0)
	}
}

// spare is the server that becomes the master next.
func (w *world) spare() *host {
	for _, h := range w.servers {
		if h != w.host && (w.table == nil || !slices.ContainsFunc(w.table.Ranges, func(r simredis.Range) bool { return r.Owner == h.address })) {
			return h
		}
	}
	return nil
}

// ownerOf returns the node of a Cluster that has the slot of a key.
func (w *world) ownerOf(key int) *host { return w.at(w.table.Owner(simredis.Slot(w.plan.tag(key)))) }

// at returns the host at an address, or nil.
func (w *world) at(address string) *host {
	for _, h := range slices.Concat(w.servers, w.watchers) {
		if h.address == address {
			return h
		}
	}
	return nil
}

// reach returns the host at an address, or an error.
func (w *world) reach(address string) (*host, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h := w.at(address); h != nil && !h.away() {
		return h, nil
	}
	return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
}

// away reports whether nothing answers at the host's address.
func (h *host) away() bool { return h.w.net.now() < h.back }

// leave has the host be away for some time.
func (h *host) leave(length time.Duration) {
	h.w.breakAll(func(c *conn) bool { return c.host == h })
	h.w.mu.Lock()
	h.back = max(h.back, h.w.net.now()+length)
	h.w.mu.Unlock()
}
