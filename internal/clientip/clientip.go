// Package clientip finds the addresses of a request, and lets matchers see IPv4-mapped addresses
// as IPv4 addresses, and a slash before each path.
package clientip

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// MatchAny reports whether any of the matcher sets matches. It is false for an empty list.
//
// Behind a dual-stack proxy the client address may be IPv4-mapped (::ffff:192.0.2.1). The
// matchers see the IPv4 address, as keys do: otherwise IPv4 ranges would not match, and blocked
// clients would get through.
//
// The target of a request may have no path (GET http://a.test), or one without a slash (GET *). The
// matchers see the slash, as keys and upstreams do: otherwise /* would not match.
func MatchAny(sets caddyhttp.MatcherSets, r *http.Request) (bool, error) {
	if len(sets) == 0 {
		return false, nil
	}
	if mapped := Client(r); strings.HasPrefix(mapped, "::ffff:") {
		if addr, err := netip.ParseAddr(mapped); err == nil && addr.Is4In6() {
			caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, addr.Unmap().String())
			defer caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, mapped)
		}
	}
	if r.URL != nil && !strings.HasPrefix(r.URL.Path, "/") { // it has none if only an address is matched
		path := r.URL.Path
		r.URL.Path = "/" + path
		defer func() { r.URL.Path = path }()
	}
	return sets.AnyMatchWithError(r)
}

// UnmapRange returns an IPv4-mapped address or range as an IPv4 one, and other text as it is.
func UnmapRange(text string) string {
	if addr, err := netip.ParseAddr(text); err == nil {
		return addr.Unmap().String()
	}
	const mappedBits = 96 // of ::ffff:0:0/96, in which all mapped addresses are
	prefix, err := netip.ParsePrefix(text)
	if err != nil || !prefix.Addr().Is4In6() || prefix.Bits() < mappedBits {
		return text
	}
	return netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-mappedBits).String()
}

// Remote returns the address of the other end of the connection.
func Remote(r *http.Request) string { return WithoutPort(r.RemoteAddr) }

// WithoutPort returns an address or a host without its port, if it has one.
func WithoutPort(address string) string {
	if strings.IndexByte(address, ':') < 0 {
		return address // SplitHostPort would allocate an error
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

// Client returns the client's address according to Caddy, which trusts configured proxies.
func Client(r *http.Request) string {
	ip, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	return ip
}
