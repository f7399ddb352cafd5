package store

import (
	"cmp"
	"iter"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gaissmai/bart"
)

// Network is the override of a network. It does not change, but for what is counted.
type Network struct {
	Prefix   netip.Prefix
	Override Override // For is how long it held when this process has learned of it

	until    int64 // by the clock of its Networks; 0: it does not end
	requests atomic.Uint64
}

// Count counts a request for which the network has decided.
func (n *Network) Count() { n.requests.Add(1) }

// Requests returns for how many requests of this process the network has decided.
func (n *Network) Requests() uint64 { return n.requests.Load() }

// NewNetwork makes the override of a network, which ends at a time by the clock of its Networks; 0: it does not end. One
// of KindNone is an exception: neither it nor a larger network decides.
func NewNetwork(prefix netip.Prefix, to *PreparedOverride, until int64) *Network {
	return &Network{Prefix: prefix, Override: to.Override, until: until}
}

func (n *Network) ended(now int64) bool { return n.until != 0 && n.until <= now }

// Networks are the overrides of networks in a zone, in a tree: the time to find one does not grow with their number. A store
// makes them with [NewNetworks]. They may be used from several goroutines at once. The nil Networks are empty.
type Networks struct {
	now  func() int64
	tree atomic.Pointer[bart.Table[*Network]] // does not change; nil if there are none
	mu   sync.Mutex                           // who changes networks has it
}

// NewNetworks makes Networks on a clock, in microseconds.
func NewNetworks(now func() int64) *Networks { return &Networks{now: now} }

// Any reports whether a network may have an effect. It costs next to nothing.
func (n *Networks) Any() bool { return n != nil && n.tree.Load() != nil }

// Find returns the network that decides for a key, or nil. The key is an address or a network.
func (n *Networks) Find(key netip.Prefix) (found *Network) {
	if n == nil {
		return nil
	}
	tree := n.tree.Load()
	if tree == nil || !key.IsValid() {
		return nil
	}
	if key.IsSingleIP() {
		found, _ = tree.Lookup(key.Addr())
	} else {
		found, _ = tree.LookupPrefix(key)
	}
	if found != nil && found.until != 0 && found.ended(n.now()) {
		found = nil
		for _, around := range tree.Supernets(key) { // the smallest one first
			if !around.ended(n.now()) {
				found = around
				break
			}
		}
	}
	if found != nil && found.Override.Kind == KindNone {
		return nil
	}
	return found
}

// Left returns for how much longer the override of a network holds: 0 if it does not end.
func (n *Networks) Left(of *Network) time.Duration {
	if of.until == 0 {
		return 0
	}
	return max(time.Microsecond, time.Duration(of.until-n.now())*time.Microsecond)
}

// Override returns the override of exactly this network with the time that is left. The kind is KindNone without one.
func (n *Networks) Override(of netip.Prefix) (o Override) {
	if found := n.Find(of); found != nil && found.Prefix == of {
		o = n.Remaining(found)
	}
	return o
}

// Remaining returns the override of a network with the time that is left.
func (n *Networks) Remaining(of *Network) Override {
	o := of.Override
	o.For = n.Left(of)
	return o
}

// All returns the networks that have not ended, without exceptions, sorted by address.
func (n *Networks) All() iter.Seq[*Network] {
	return func(yield func(*Network) bool) {
		if n == nil {
			return
		}
		tree, now := n.tree.Load(), n.now()
		if tree == nil { // loaded once: the last network may be removed meanwhile
			return
		}
		for _, found := range tree.AllSorted() {
			if found.Override.Kind != KindNone && !found.ended(now) && !yield(found) {
				return
			}
		}
	}
}

// Change changes networks: one of KindNone is an exception, and nil removes a network. With fresh, no earlier network stays.
// What was counted stays. A change costs neither a copy of the others nor a look at them.
func (n *Networks) Change(fresh bool, changes map[netip.Prefix]*Network) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before := cmp.Or(n.tree.Load(), new(bart.Table[*Network]))
	all := before
	if fresh {
		all = new(bart.Table[*Network])
	}
	for prefix, network := range changes {
		if network == nil {
			all = all.DeletePersist(prefix)
			continue
		}
		if was, ok := before.Get(prefix); ok && was != network {
			network.requests.Add(was.requests.Load())
		}
		all = all.InsertPersist(prefix, network)
	}
	n.keep(all)
}

// Sweep removes the networks that have ended.
func (n *Networks) Sweep() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if tree := n.tree.Load(); tree != nil {
		all := tree
		for prefix, network := range tree.All() {
			if network.ended(n.now()) {
				all = all.DeletePersist(prefix)
			}
		}
		n.keep(all)
	}
}

// keep has all networks replace those that there are. The lock is held.
func (n *Networks) keep(all *bart.Table[*Network]) {
	if all.Size() == 0 {
		all = nil
	}
	n.tree.Store(all)
}

// ParseNetwork reads what a store has written: the kind, the end in microseconds of the store's clock and the tail. now
// is the time on that clock, and here the same moment on the clock of the Networks. It returns nil if the network has
// no override, or an error if it has one of another version.
func ParseNetwork(network netip.Prefix, value string, now, here int64) (*Network, error) {
	made := &Network{Prefix: network}
	if len(value) <= overrideHead || value[0] != byte(KindNone) { // no exception
		var err error
		if made.Override, err = ParseOverride(value, now); err != nil || made.Override.Kind == KindNone {
			return nil, err
		}
	}
	if until := wireUntil(value); until != 0 {
		if until <= now {
			return nil, nil
		}
		made.until = here + until - now
	}
	return made, nil
}
