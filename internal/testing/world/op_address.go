package world

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/request/limiter"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Keys have names such as k0, or are addresses: then networks around them can decide about requests of whole instances.

// addresses are those of clients. The first one is in both networks, the next two in the first network, and the last one in none.
var addresses = map[int][]netip.Addr{
	4: addrs("203.0.113.1", "203.0.113.77", "203.0.113.200", "198.51.100.9"),
	6: addrs("2001:db8:7::1", "2001:db8:7:77::1", "2001:db8:7:c8::1", "2001:db8:8::1"),
}

// around are the networks. Each is in that of the number before. The first ones are of worlds in which keys are no addresses.
var around = map[int][]netip.Prefix{
	0: {netip.MustParsePrefix("203.0.0.0/8"), netip.MustParsePrefix("203.0.0.0/9")},
	4: {netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("203.0.113.0/30")},
	6: {netip.MustParsePrefix("2001:db8:7::/48"), netip.MustParsePrefix("2001:db8:7::/60")},
}

func addrs(all ...string) (parsed []netip.Addr) {
	for _, a := range all {
		parsed = append(parsed, netip.MustParseAddr(a))
	}
	return parsed
}

// network returns a network by its number.
func (p *Plan) network(number int) netip.Prefix { return around[p.Addresses][number] }

// keys is how many keys a zone has at most.
func (p *Plan) keys() int { return max(maxKeys, len(addresses[p.Addresses])) }

// client is what a client sends that has a key.
func (p *Plan) client(number int) string {
	if p.Addresses == 0 {
		return p.keyName(number)
	}
	return addresses[p.Addresses][number].String()
}

// keyName is the name of a key, as stores have it.
func (p *Plan) keyName(number int) string {
	switch p.Addresses {
	case 0:
		return fmt.Sprintf("k%d", number)
	case 4:
		return p.client(number)
	}
	return p.prefix(number).String()
}

// prefix is a key that is an address.
func (p *Plan) prefix(number int) netip.Prefix {
	bits := map[int]int{4: 32, 6: 64}[p.Addresses]
	return netip.PrefixFrom(addresses[p.Addresses][number], bits).Masked()
}

// tag is the name of a key, as it is in the keys of Redis.
func (p *Plan) tag(number int) string { return store.Escape(p.keyName(number)) }

// keyNumber returns which key of the plan has a name, if one has.
func (p *Plan) keyNumber(name string) (number int, ok bool) {
	if p.Addresses == 0 {
		number, err := strconv.Atoi(strings.TrimPrefix(name, "k"))
		return number, err == nil
	}
	for number := range p.keys() {
		if p.keyName(number) == name {
			return number, true
		}
	}
	return 0, false
}

// selector says whose override is meant by the key of an event.
func (p *Plan) selector(number int) store.Selector {
	of := store.Selector{Key: p.keyName(number)}
	if p.Addresses != 0 {
		of.Network = p.prefix(number)
	}
	return of
}

// Unasked is what a zone has refused without its store.
type Unasked struct {
	Zone   int
	Banned bool // by a network
	Wait   time.Duration
	DryRun bool
}

// unasked notes what zones have refused without their store.
func (v *Verdict) unasked(of *limiter.Verdict) {
	for i := range of.Rejections {
		f := &of.Rejections[i]
		v.Unasked = append(v.Unasked, Unasked{f.Zone.Index, f.Policy != nil, f.Decision.RetryAfter, f.DryRun})
	}
}
