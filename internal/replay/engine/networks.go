package engine

import (
	"cmp"
	"hash/maphash"
	"net/netip"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/replay"
)

const (
	maxNetworks   = 1 << 18 // that are looked at, with about 100 bytes each
	manyClients   = 20      // in a network, with one agent: those are a program that changes its address
	mostNetworks  = 5       // that are reported
	mostRefused   = 10      // networks of a zone that are reported
	networkBitsV4 = 24
	networkBitsV6 = 48
)

// networks count the clients and the agents of each network.
type networks map[netip.Prefix]*network

type network struct {
	clients  int
	requests int64
	agent    string
	mixed    bool // several agents, or requests without one
}

// meet counts a request.
func (all networks) meet(client, agent string, isNew bool) {
	address, err := netip.ParseAddr(client)
	if err != nil {
		return
	}
	prefix := networkOf(address)
	n := all[prefix]
	if n == nil {
		if len(all) >= maxNetworks {
			return
		}
		n = &network{agent: strings.Clone(agent), mixed: agent == ""}
		all[prefix] = n
	}
	if n.requests++; isNew {
		n.clients++
	}
	if n.agent != agent {
		n.mixed, n.agent = true, "" // it is not needed any more
	}
}

// networkOf returns the network of an address.
func networkOf(address netip.Addr) netip.Prefix {
	bits := networkBitsV4
	if address = address.Unmap(); address.Is6() {
		bits = networkBitsV6
	}
	return netip.PrefixFrom(address, bits).Masked()
}

// ofOneAgent returns the networks in which many clients have one agent, those with the most requests first.
func (all networks) ofOneAgent() (found []replay.Network) {
	for prefix, n := range all {
		if !n.mixed && n.clients >= manyClients {
			found = append(found, replay.Network{Network: prefix.String(), Clients: n.clients, Requests: n.requests, Agent: n.agent})
		}
	}
	slices.SortFunc(found, func(a, b replay.Network) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Network, b.Network))
	})
	return found[:min(len(found), mostNetworks)]
}

// refusedNetworks returns the networks in which the zone refuses several keys, those with the most refusals first.
// Keys that are networks themselves are left out.
func (z *zoneTally) refusedNetworks() []replay.RefusedNetwork {
	if z.refused == 0 {
		return nil
	}
	all := make(map[netip.Prefix]*replay.RefusedNetwork)
	for _, k := range z.keys {
		address := z.zone.Template.Address(k.key)
		if !address.IsValid() {
			continue
		}
		prefix := networkOf(address.Addr())
		if address.Bits() <= prefix.Bits() {
			continue
		}
		n := all[prefix]
		if n == nil {
			n = &replay.RefusedNetwork{Network: prefix.String()}
			all[prefix] = n
		}
		n.Keys++
		n.Requests += k.requests
		if k.refusals != nil {
			n.KeysRefused++
			n.Refused += k.refusals.refused
		}
	}
	var found []replay.RefusedNetwork
	for _, n := range all {
		if n.KeysRefused > 1 {
			found = append(found, *n)
		}
	}
	slices.SortFunc(found, func(a, b replay.RefusedNetwork) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Network, b.Network))
	})
	return found[:min(len(found), mostRefused)]
}

// isNew notes a client, and reports whether it had not been met before.
func (t *tallies) isNew(client string) bool {
	hash := maphash.String(t.seed, client)
	if _, met := t.clients[hash]; met || len(t.clients) >= t.maxKeys {
		return false
	}
	t.clients[hash] = struct{}{}
	return true
}
