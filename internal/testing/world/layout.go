package world

import (
	"cmp"
	"fmt"
	"net"
	"slices"
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
	w.hosts = make(map[string]*host)
	add := func(address string) *host {
		h := newHost(w)
		h.address = address
		w.hosts[address] = h
		return h
	}
	switch w.plan.Layout {
	case Sentinels:
		w.host = add(serverAddress(0))
		spare := add(serverAddress(1))
		spare.demoted = true
		for _, address := range w.plan.Layout.addresses() {
			s := add(address)
			s.sentinel = &simredis.Sentinel{Name: masterName, Master: w.host.address}
		}
	case Cluster:
		w.table = new(simredis.Table)
		for i := range masters {
			first, behind := i*simredis.Slots/masters, (i+1)*simredis.Slots/masters
			w.table.Ranges = append(w.table.Ranges, simredis.Range{First: first, Last: behind - 1, Owner: serverAddress(i)})
		}
		for i := range masters + 1 {
			h := add(serverAddress(i))
			h.demoted = i == masters
			h.redis.View = simredis.NewView(h.address, w.table)
		}
		w.host = w.ownerOf(0)
	default:
		w.host = add(singleAddress)
	}
}

// servers are those that have data, in the order of their addresses.
func (w *world) servers() (all []*host) {
	for _, h := range w.hosts {
		if h.sentinel == nil {
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(a, b *host) int { return cmp.Compare(a.address, b.address) })
	return all
}

// watchers are the Sentinels.
func (w *world) watchers() (all []*host) {
	if w.plan.Layout == Sentinels {
		for _, address := range w.plan.Layout.addresses() {
			all = append(all, w.hosts[address])
		}
	}
	return all
}

// spare is the server that becomes the master next.
func (w *world) spare() *host {
	for _, h := range w.servers() {
		if h != w.host && (w.table == nil || !slices.ContainsFunc(w.table.Ranges, func(r simredis.Range) bool { return r.Owner == h.address })) {
			return h
		}
	}
	return nil
}

// ownerOf returns the node of a Cluster that has the slot of a key.
func (w *world) ownerOf(key int) *host { return w.hosts[w.table.Owner(simredis.Slot(w.plan.tag(key)))] }

// reach returns the host at an address, or an error.
func (w *world) reach(address string) (*host, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.hosts[address]
	if h == nil || h.away() {
		return nil, &net.OpError{Op: "dial", Err: errRefused}
	}
	return h, nil
}

// away reports whether nothing answers at the host's address.
func (h *host) away() bool { return h.w.net.now() < h.back }

// leave has the host be away for some time.
func (h *host) leave(length time.Duration) {
	h.breakAll(errReset)
	h.w.mu.Lock()
	h.back = max(h.back, h.w.net.now()+length)
	h.w.mu.Unlock()
}
