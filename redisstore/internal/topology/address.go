package topology

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
)

// name is how a server calls another one, or itself: in CLUSTER SLOTS, MOVED and ASK, or a Sentinel its master.
type name struct {
	host, port string
	ip         string // what it adds to the host; empty if it adds nothing
}

// readName reads host:port. Redis writes an IPv6 address without brackets there.
func readName(text string) name {
	i := strings.LastIndexByte(text, ':')
	return name{host: text[:max(i, 0)], port: text[i+1:]}
}

// unknown reports whether the server does not say which host it is.
func (n name) unknown() bool { return n.host == "" || n.host == "?" }

// address returns the address of a server that the one at from calls so. Without a host, that is the host of
// from itself.
func (n name) address(from string) (string, error) {
	host := strings.TrimSuffix(strings.TrimPrefix(n.host, "["), "]")
	if n.unknown() {
		host = n.ip
	}
	if host == "" {
		host, _, _ = net.SplitHostPort(from)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String()
	}
	if port, err := strconv.ParseUint(n.port, 10, 16); err != nil || port == 0 {
		return "", node.WithAdvice(fmt.Errorf("it names a server without a port: %q of host %q", n.port, host), advice.NamePorts.With())
	}
	return net.JoinHostPort(host, n.port), nil
}

// slotRange says which server has the slots from first to last.
type slotRange struct {
	first, last int
	address     string
	instead     string // its address by IP, if a name is known too
}

var errSlots = errors.New("it answers CLUSTER SLOTS in an unknown form")

// readSlots reads what the server at from answers to CLUSTER SLOTS. Ranges without a server are left out.
func readSlots(from string, answer []any) (ranges []slotRange, err error) {
	for _, entry := range answer {
		fields, _ := entry.([]any)
		if len(fields) < 2 {
			return nil, errSlots
		}
		first, isFirst := fields[0].(int64)
		last, isLast := fields[1].(int64)
		if !isFirst || !isLast || first < 0 || first > last || last >= Slots {
			return nil, errSlots
		}
		if len(fields) == 2 {
			continue
		}
		master, _ := fields[2].([]any)
		if len(master) < 2 {
			return nil, errSlots
		}
		n := name{port: fmt.Sprint(master[1]), ip: addedIP(master)}
		n.host, _ = master[0].(string) // nil: it has no host that it says
		r := slotRange{first: int(first), last: int(last)}
		if r.address, err = n.address(from); err != nil {
			return nil, err
		}
		if n.ip != "" {
			r.instead = net.JoinHostPort(n.ip, n.port)
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}

// addedIP is the IP that CLUSTER SLOTS adds to the host, the port and the id of a server, since Redis 7.
func addedIP(server []any) (ip string) {
	if len(server) > 3 {
		pairs, _ := server[3].([]any)
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == "ip" {
				ip, _ = pairs[i+1].(string)
			}
		}
	}
	return ip
}

// sentTo returns the node that one sends a call of a slot to. Sure is false if that does not say the host, and several
// known nodes have the port: they are tried in turn, because one that is wrong sends back.
func (t *Topology) sentTo(from *node.Node, slot uint16, text string, hop int) (to *node.Node, sure bool, err error) {
	n := readName(text)
	if n.unknown() {
		var some []*node.Node
		for _, other := range t.all() {
			switch {
			case other == from || !strings.HasSuffix(other.Address, ":"+n.port):
			case other == t.owner(slot):
				return other, false, nil
			default:
				some = append(some, other)
			}
		}
		if len(some) > 0 {
			tried := (hop - 1) / 2 // there and back
			return some[tried%len(some)], len(some) == 1, nil
		}
	}
	address, err := n.address(from.Address)
	if err != nil {
		return nil, false, err
	}
	to, err = t.at(address)
	return to, true, err
}
