package key

import (
	"cmp"
	"fmt"
	"net/netip"
)

// addressPlaceholders are the placeholders that hold the client's address.
var addressPlaceholders = map[string]bool{
	"http.vars.client_ip":      true,
	"http.request.remote.host": true,
}

// defaultIPv6Prefix is for the client's address: a client usually has a whole /64.
const defaultIPv6Prefix = 64

// prefixes say how many bits of an address count. With 0 for both, a value is not an address.
type prefixes struct{ IPv4, IPv6 int }

// forPlaceholder returns the prefixes for the values of a placeholder. Placeholders that always hold
// an address have defaults.
func (p prefixes) forPlaceholder(placeholder string) prefixes {
	if addressPlaceholders[placeholder] {
		p.IPv6 = cmp.Or(p.IPv6, defaultIPv6Prefix)
	}
	if p != (prefixes{}) {
		p = prefixes{cmp.Or(p.IPv4, 32), cmp.Or(p.IPv6, 128)}
	}
	return p
}

// IsAddress reports whether the key is an address and nothing else.
func (k *Template) IsAddress() bool {
	return len(k.Parts) == 1 && k.Parts[0].Placeholder != "" && k.Parts[0].mask != (prefixes{})
}

// Network returns the network that people write, masked. It is not valid if the text is none that has several keys.
func (k *Template) Network(text string) netip.Prefix {
	network, err := netip.ParsePrefix(text)
	if err != nil || network.Addr().Is4In6() || !k.IsAddress() || network.Bits() >= k.Parts[0].mask.bits(network.Addr()) {
		return netip.Prefix{}
	}
	return network.Masked()
}

// ByNetwork reports whether clients of a network have one key, other than those of an IPv6 /64.
func (k *Template) ByNetwork() bool {
	return k.HasAddress && (cmp.Or(k.Prefixes.IPv4, 32) < 32 || cmp.Or(k.Prefixes.IPv6, 128) < defaultIPv6Prefix)
}

// bits says how many bits of an address count.
func (p prefixes) bits(address netip.Addr) int {
	if address.Is4() {
		return p.IPv4
	}
	return p.IPv6
}

// apply returns an address in canonical form and cut to its prefix, and other values as they are.
// An IPv4-mapped address becomes an IPv4 address. The zone of an IPv6 address is removed, because
// the client can choose it.
func (p prefixes) apply(value string) string {
	if p == (prefixes{}) || value == "" || !beginsAddress(value[0]) {
		return value
	}
	addr, err := netip.ParseAddr(value)
	if err != nil {
		return value
	}
	if addr.Is4() && p.IPv4 == 32 {
		return value // the most common case: it is canonical already
	}
	addr = addr.Unmap().WithZone("")
	if p.bits(addr) == addr.BitLen() {
		return addr.String()
	}
	return netip.PrefixFrom(addr, p.bits(addr)).Masked().String()
}

// beginsAddress reports whether an address can begin with a character.
func beginsAddress(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' || c == ':'
}

// fromText returns the key of an address that people write. A network is one, too, if all of its
// addresses have the same key. Without an address the text is empty, or "@" for a Unix socket.
func (p prefixes) fromText(text string) (string, error) {
	if text == "" || text == "@" {
		return text, nil
	}
	if _, err := netip.ParseAddr(text); err == nil {
		return p.apply(text), nil
	}
	if network, err := netip.ParsePrefix(text); err == nil && !network.Addr().Is4In6() {
		bits := p.bits(network.Addr())
		if network.Bits() >= bits {
			return p.apply(network.Addr().String()), nil
		}
		key := fmt.Sprintf("one /%d network", bits)
		if bits == network.Addr().BitLen() {
			key = "one address"
		}
		return "", fmt.Errorf("%q is a network, not an address: a key is %s; for networks, use the options block and exempt", text, key)
	}
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return "", fmt.Errorf("%q is not an address: did you mean %s?", text, withPort.Addr())
	}
	return "", fmt.Errorf("%q is not an address", text)
}
