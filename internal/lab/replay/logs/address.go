package logs

import (
	"cmp"
	"net/netip"
	"strconv"
	"strings"
)

const (
	forwardedFor = "X-Forwarded-For"

	// Socket is the address of what connects by a unix socket, as Caddy names it.
	Socket = "@"
)

// address reads where a request came from.
func address(at func(*builder) *string) func(*builder, string) error {
	return func(b *builder, v string) error {
		switch {
		case v == Socket, strings.HasPrefix(v, "unix:"):
			b.to.RemoteIP = Socket
			return nil
		case strings.Contains(v, ","):
			b.list = v
			return nil
		}
		ip := cmp.Or(parseAddress(v), b.hash(v))
		if ip == "" {
			return errNoAddress
		}
		*at(b) = ip
		return nil
	}
}

// addressAndPort reads an address of IPv6 without brackets too.
func addressAndPort(b *builder, v string) error {
	b.to.ClientIP = parseAddress(v[:max(0, strings.LastIndexByte(v, ':'))])
	return nil
}

// forwarded reads what proxies have passed on, which has no ports.
func forwarded(b *builder, v string) error {
	if b.list = v; !strings.Contains(v, ",") && parseAddress(v) != v {
		return errNoAddress
	}
	return nil
}

// parseAddress returns an address without its port, "" if it is none.
func parseAddress(v string) string {
	if rest, ok := strings.CutPrefix(v, "["); ok { // [2001:db8::1]:443
		v, _, _ = strings.Cut(rest, "]")
	} else if strings.Count(v, ":") == 1 {
		v, _, _ = strings.Cut(v, ":")
	}
	if _, err := netip.ParseAddr(v); err != nil {
		return ""
	}
	return v
}

// hash returns an address for what Caddy's filter hash has made of one: it has 32 bits, so 0bd1a5c8 is
// 2001:db8:bd1:a5c8::, which no client has.
func (b *builder) hash(v string) string {
	if _, err := strconv.ParseUint(v, 16, 32); err != nil || len(v) != 8 || !b.object {
		return ""
	}
	b.of.Hashed = true
	return netip.MustParseAddr("2001:db8:" + v[:4] + ":" + v[4:] + "::").String()
}

// client finds the client's address. In a list, the first one is the client, as for Caddy, and the last one is
// the connection. The list becomes the header with which the server finds the client by itself.
func (b *builder) client() error {
	to, passed := b.to, strings.Join(b.to.Header[forwardedFor], ",")
	if b.list != "" && passed == "" {
		b.of.Header.add(forwardedFor)
		b.add(forwardedFor, b.list, false)
	}
	if to.ClientIP == "" && (b.list != "" || to.RemoteIP == Socket) {
		last := ""
		for one := range strings.SplitSeq(cmp.Or(b.list, passed), ",") {
			if ip := parseAddress(strings.TrimSpace(one)); ip != "" {
				to.ClientIP, last = cmp.Or(to.ClientIP, ip), ip
			}
		}
		to.RemoteIP = cmp.Or(to.RemoteIP, last)
	}
	if to.ClientIP = cmp.Or(to.ClientIP, to.RemoteIP); to.ClientIP == "" || to.ClientIP == Socket {
		return errNoAddress
	}
	// A filter has cut the addresses of a family if all of them end in zeros.
	family, zeros := 0, ".0"
	if strings.Contains(to.ClientIP, ":") {
		family, zeros = 1, "::"
	}
	b.met[family]++
	if strings.HasSuffix(to.ClientIP, zeros) {
		b.zeros[family]++
	}
	b.of.Cut = !b.of.Hashed && (b.met[0] > 0 && b.zeros[0] == b.met[0] || b.met[1] > 0 && b.zeros[1] == b.met[1])
	return nil
}
