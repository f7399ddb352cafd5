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
	singleAddress = "redis:6379"
	masterName    = "limits"
	masters       = 3 // of a Cluster
	sentinels     = 3
)

func serverAddress(i int) string   { return fmt.Sprintf("r%d:6379", i) }
func sentinelAddress(i int) string { return fmt.Sprintf("s%d:26379", i) }

// addresses are where instances look for Redis.
func (l Layout) addresses() (all []string) {
	switch l {
	case Sentinels:
		for i := range sentinels {
			all = append(all, sentinelAddress(i))
		}
	case Cluster:
		for i := range masters {
			all = append(all, serverAddress(i))
		}
	default:
		all = []string{singleAddress}
	}
	return all
}

// options are those of an instance's store.
func (l Layout) options() redisstore.Options {
	switch o := (redisstore.Options{Addresses: l.addresses()}); l {
	case Sentinels:
		o.Mode, o.MasterName = redisstore.ModeSentinel, masterName
		return o
	case Cluster:
		o.Mode = redisstore.ModeCluster
		return o
	}
	return redisstore.Options{Address: singleAddress}
}

// build starts the servers.
func (w *world) build() {
	switch w.plan.Layout {
	case Sentinels:
		w.servers = []*host{newHost(w, serverAddress(0)), newHost(w, serverAddress(1))}
		w.servers[1].demoted = true
		for i := range sentinels {
			s := newHost(w, sentinelAddress(i))
			s.sentinel = &simredis.Sentinel{Name: masterName, Master: serverAddress(0)}
			w.watchers = append(w.watchers, s)
		}
	case Cluster:
		w.table = new(simredis.Table)
		for i := range masters {
			first, behind := i*simredis.Slots/masters, (i+1)*simredis.Slots/masters
			w.table.Ranges = append(w.table.Ranges, simredis.Range{First: first, Last: behind - 1, Owner: serverAddress(i)})
		}
		for i := range masters + 1 {
			h := newHost(w, serverAddress(i))
			h.demoted = i == masters
			h.redis.View = simredis.NewView(h.address, w.table)
			w.servers = append(w.servers, h)
		}
		w.host = w.ownerOf(0)
		return
	default:
		w.servers = []*host{newHost(w, singleAddress)}
	}
	w.host = w.servers[0]
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
