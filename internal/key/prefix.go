package key

import (
	"cmp"
	"net/netip"
)

// addressPlaceholders are those that hold a client's address.
var addressPlaceholders = map[string]bool{
	"http.vars.client_ip":      true,
	"http.request.remote.host": true,
}

// defaultIPv6Prefix is for the address of a client, who commonly has a whole /64.
const defaultIPv6Prefix = 64

// prefixes are how many bits of an address count. With 0 for both, a value is text.
type prefixes struct{ IPv4, IPv6 int }

// forPlaceholder is what holds for the values of a placeholder: those that are addresses for sure
// have defaults.
func (p prefixes) forPlaceholder(placeholder string) prefixes {
	if addressPlaceholders[placeholder] {
		p.IPv6 = cmp.Or(p.IPv6, defaultIPv6Prefix)
	}
	if p != (prefixes{}) {
		p = prefixes{cmp.Or(p.IPv4, 32), cmp.Or(p.IPv6, 128)}
	}
	return p
}

// apply writes an address the one way it is written, cut to its prefix: an IPv4 address
// in IPv6 clothes is the IPv4 address, and the zone of an IPv6 address is the client's
// to choose.
func (p prefixes) apply(value string) string {
	if p == (prefixes{}) {
		return value
	}
	addr, err := netip.ParseAddr(value)
	if err != nil {
		return value
	}
	if addr.Is4() && p.IPv4 == 32 {
		return value // as nearly always: it stands there as it should
	}
	addr = addr.Unmap().WithZone("")
	bits := p.IPv6
	if addr.Is4() {
		bits = p.IPv4
	}
	if bits == addr.BitLen() {
		return addr.String()
	}
	prefix, err := addr.Prefix(bits)
	if err != nil {
		return value
	}
	return prefix.String()
}
