// Package clientip finds the addresses of a request, and has matchers see an IPv4 address that
// a proxy has written as an IPv6 one for what it is.
package clientip

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// MatchAny tells whether a matcher set matches. Of none, none does.
//
// A proxy in front may tell of an IPv4 address in IPv6 clothes. Matchers get to see the IPv4
// address, as keys do: ranges of IPv4 would not hold it otherwise, and who is blocked pass.
func MatchAny(sets caddyhttp.MatcherSets, r *http.Request) (bool, error) {
	if len(sets) == 0 {
		return false, nil
	}
	if told, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string); strings.HasPrefix(told, "::ffff:") {
		if addr, err := netip.ParseAddr(told); err == nil && addr.Is4In6() {
			caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, addr.Unmap().String())
			defer caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, told)
		}
	}
	return sets.AnyMatchWithError(r)
}

// UnmapRange writes a range of IPv4 addresses in IPv6 clothes as what it is.
func UnmapRange(text string) string {
	if addr, err := netip.ParseAddr(text); err == nil {
		return addr.Unmap().String()
	}
	const clothes = 96
	prefix, err := netip.ParsePrefix(text)
	if err != nil || !prefix.Addr().Is4In6() || prefix.Bits() < clothes {
		return text
	}
	return netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-clothes).String()
}

// Remote is the address of the connection's other end.
func Remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// Client is the address that Caddy believes in.
func Client(r *http.Request) string {
	ip, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	return ip
}
