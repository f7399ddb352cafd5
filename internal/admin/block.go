package admin

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	keys "github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/outcome"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
)

// describeBlock says in the answer about a key whether the zone's option block refuses its requests.
// Only the address is known of them: that in the key, or else in the text of a call without a zone.
func (z *runningZone) describeBlock(c *adminCall, key string, answer *adminapi.Key) {
	if len(z.Block) == 0 {
		return
	}
	answer.BlockStatus = zone.BlockStatus
	address, ofKey := z.Zone.Template.Address(key), true
	if !address.IsValid() {
		address, ofKey = keys.ParseAddress(c.query.Get("key")), false
	}
	if !address.IsValid() {
		return
	}
	switch always, sometimes := blocks(z.Block, address.Addr()); {
	case always:
		answer.BlockedAddress = address.Addr().String()
		if ofKey && !z.IsDryRun(key) {
			answer.Outcome, answer.Refused, answer.Status = outcome.Names[outcome.Rejected], true, zone.BlockStatus
		}
	case !sometimes && address.IsSingleIP():
		answer.BlockStatus = 0
	}
}

// blocks reports whether the matchers match all requests from an address, or at least some. A set that does not match the
// address never matches, and one with other matchers, too, may match.
func blocks(sets caddyhttp.MatcherSets, address netip.Addr) (always, sometimes bool) {
	for _, set := range sets {
		matches, alone := true, true
		for _, m := range set {
			switch m.(type) {
			case *caddyhttp.MatchClientIP, *caddyhttp.MatchRemoteIP:
				is, err := clientip.MatchAny(caddyhttp.MatcherSets{{m}}, requestFrom(address))
				matches = matches && err == nil && is
			default:
				alone = false
			}
		}
		always, sometimes = always || matches && alone, sometimes || matches
	}
	return always, sometimes
}

// requestFrom returns a request of which just the client's address is known.
func requestFrom(address netip.Addr) *http.Request {
	vars := map[string]any{caddyhttp.ClientIPVarKey: address.String()}
	ctx := context.WithValue(context.Background(), caddyhttp.VarsCtxKey, vars)
	return (&http.Request{RemoteAddr: netip.AddrPortFrom(address, 1).String()}).WithContext(ctx)
}
