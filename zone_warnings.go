package caddyratelimit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/internal/clientip"
	"github.com/seed-161337e5/caddyratelimit/internal/duration"
	"github.com/seed-161337e5/caddyratelimit/internal/key"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/routes"
	"github.com/seed-161337e5/caddyratelimit/internal/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// warn warns about options that do not do what they seem to do. It returns an error where a
// placeholder is never set. Exempt are the zone's matchers before they were loaded, and clients says where
// addresses of clients come from; nil if that is not known.
func (z *Zone) warn(exempt caddyhttp.RawMatcherSets, clients *clientip.Source, around *routes.Routes, log *zap.Logger) error {
	log = log.With(zap.String("zone", z.live.Name))
	if g := z.live.Policy; g != nil && z.live.Cost.From == "" && z.live.Cost.Number > g.MaxCost() && g.Numbers.Events > 0 {
		log.Warn("the cost is above what the limit can ever allow, so every request of this zone is refused; "+lowerCost.With().String(),
			zap.Int64("cost", z.live.Cost.Number), zap.Int64("limit", g.MaxCost()))
	}
	if around.MissesPathless(z.live.Name) {
		log.Warn("a request whose target has no path (GET http://example.com) does not match /*, and passes without the limit; " + noMatcher.With().String())
	}
	if around.ChargesTwice(z.live.Name) {
		log.Warn("two rate_limit handlers that a request meets have this zone, so it is charged twice; " + leaveOneOut.With().String())
	}
	z.warnAboutKey(log)
	warnAboutHeaders(exempt, log)
	warnAboutProxies(exempt, clients, log)
	for _, use := range z.placeholders() {
		if err := z.checkUse(use, around, log); err != nil {
			return err
		}
		if use.inKey {
			z.warnIfFree(use.option, use.name, around, log)
		} else {
			warnIfChosen(use.option, z.live.Name, use.name, around, log)
		}
	}
	return nil
}

// serverIdle is how long a server of Caddy waits for a client that does not go on, by default.
const serverIdle = time.Minute

// warnAboutTimeouts warns about waits that are longer than the server has for a request. Caddy counts from its begin.
func (z *Zone) warnAboutTimeouts(server *caddyhttp.Server, log *zap.Logger) {
	wait := z.live.LongestWait()
	if server == nil || wait == 0 {
		return
	}
	idle := func(timeout caddy.Duration, rate int64) caddy.Duration {
		if rate == 0 { // then it counts from what was last read or written
			return 0
		}
		return cmp.Or(timeout, caddy.Duration(serverIdle))
	}
	for _, t := range []struct {
		name, json string
		after      caddy.Duration
	}{
		{"read_body", "read_timeout", server.ReadTimeout},
		{"read_body_idle", "read_idle_timeout", idle(server.ReadIdleTimeout, server.ReadMinRate)},
		{"write", "write_timeout", server.WriteTimeout},
		{"write_idle", "write_idle_timeout", idle(server.WriteIdleTimeout, server.WriteMinRate)},
	} {
		if after := time.Duration(t.after); after > 0 && wait >= after {
			log.Warn(fmt.Sprintf("requests may wait here for %s, but the server has %s for them (timeouts %s), so some are charged and get no answer; %s",
				duration.Format(wait), duration.Format(after), t.name,
				waitLess.With(t.name+", in JSON "+t.json+",", duration.Format(wait), duration.Format(after))), zap.String("zone", z.live.Name))
		}
	}
}

// warnIfShadowed warns about a zone that never refuses because another one of the handler always does so before.
func warnIfShadowed(z *zone.Zone, all []*zone.Zone, log *zap.Logger) {
	for _, other := range all {
		if most, yes := z.ShadowedBy(other); yes {
			log.Warn(fmt.Sprintf("it never refuses: zone %s, with the same key, admits at most %d in %s; %s", other.Name, most, duration.Format(z.Policy.Rule.Limit().Window), lowerLater.With()),
				zap.String("zone", z.Name))
			return
		}
	}
}

// warnIfChosen warns if clients choose the value of a placeholder, and with it their limit.
func warnIfChosen(option, zone, name string, around *routes.Routes, log *zap.Logger) {
	if !around.Known || len(around.Foreign) > 0 { // something else may take care of it
		return
	}
	if source, ok := key.SourceOf(name); ok && isChosen(source, zone, around) {
		log.Warn(fmt.Sprintf("%s: any client can choose %s, and with it the limit; %s", option, source, instead(source)))
		return
	}
	for _, origin := range around.Origins(name) {
		for _, in := range bracedName.FindAllStringSubmatch(origin.Text, -1) {
			source, ok := key.SourceOf(in[1])
			switch {
			case !ok || !isChosen(source, zone, around):
			case origin.Pattern == "":
				log.Warn(fmt.Sprintf("%s: any client can choose %s, and with it the limit; %s", option, source, instead(source)))
				return
			default:
				log.Warn(fmt.Sprintf("%s: any client can send a %s that matches ~%s, and so choose the limit; %s", option, source, origin.Pattern, mapWhole.With()))
				return
			}
		}
	}
}

// forwarding are the headers in which proxies send the address of a client, each of which a client can send
// as well.
var forwarding = []string{
	"X-Forwarded-For", "Forwarded", "X-Real-Ip", "Cf-Connecting-Ip", "Cf-Connecting-Ipv6", "True-Client-Ip", "X-Client-Ip", "Client-Ip",
	"X-Cluster-Client-Ip", "X-Original-Forwarded-For", "X-Forwarded", "Forwarded-For", "Fastly-Client-Ip", "Fly-Client-Ip", "Do-Connecting-Ip",
	"X-Envoy-External-Address", "X-Azure-Clientip", "X-Azure-Socketip", "X-Appengine-User-Ip", "X-Vercel-Forwarded-For",
	"X-Nf-Client-Connection-Ip", "Cloudfront-Viewer-Address", "X-Originating-Ip", "X-Remote-Ip", "X-Remote-Addr", "X-Real-Client-Ip",
}

// What to do about options of a zone.
var (
	trustInstead = advice.New("load/key/forwarded", "set trusted_proxies and client_ip_headers in the global servers option, and use {client_ip}")
	leaveOut     = advice.New("load/key/browser", "leave it out of the key")
	usePath      = advice.New("load/key/query", "use %s")
	shorten      = advice.New("load/key/prefix", "set ipv6_prefix 64 or less")
	lowerLater   = advice.New("load/shadowed", "set it below that, or remove the zone")
	limitUsers   = advice.New("load/key/late", "put rate_limit behind it, in a route block or with the global option order")
	writeBraces  = advice.New("load/key/constant", "did you mean %s?")
	leaveBody    = advice.New("load/key/body", "match a part of it with vars_regexp instead, and take {re.<name>.1}, in JSON {http.regexp.<name>.1}, as the key")
	addClient    = advice.New("load/key/fields", "write {client_ip}, in JSON {http.vars.client_ip}, before it, and limit the client in another zone as well")
	noMatcher    = advice.New("load/path", "write rate_limit without a matcher")
	leaveOneOut  = advice.New("load/twice", "leave the zone out of one of them")
	lowerCost    = advice.New("load/cost", "raise the limit, or lower cost")
	chosenHeader = advice.New("load/chosen/header", "remove it before rate_limit (request_header -%s, in a route block) and set it yourself, or look a secret up with map")
	lookUp       = advice.New("load/chosen", "look a secret up with map")
	mapWhole     = advice.New("load/chosen/part", "map whole values")
	proveExempt  = advice.New("load/exempt", "match addresses with client_ip as well, or a secret value of at least %d characters")
	matchClient  = advice.New("load/exempt/proxy", "match client_ip instead")
	fillHandler  = advice.New("load/zones", "add a zone to it, or remove it")
	waitLess     = advice.New("load/timeout", "set %s to more than %s, or max_wait to less than %s")
	shareStore   = advice.New("load/store", "write store redis { address <host:port> } for one limit of all instances")
)

// warnIfFree warns about keys with parts that any client can change as often as it likes, for a new limit
// each time: headers that only a proxy should write, whole query strings and, beside an address, what
// browsers say of themselves. The site may write such a header itself before.
func (z *Zone) warnIfFree(option, name string, around *routes.Routes, log *zap.Logger) {
	warn := func(what string, fix advice.Text) {
		log.Warn(fmt.Sprintf("%s: any client can write %s, and gets a new limit with each value; %s", option, what, fix))
	}
	if path := withQuery[name]; path != "" {
		warn("the query string", usePath.With(placeholder.Written(path)))
		return
	}
	names := []string{name}
	for _, origin := range around.Origins(name) {
		for _, in := range bracedName.FindAllStringSubmatch(origin.Text, -1) {
			names = append(names, in[1])
		}
	}
	for i, name := range names {
		source, ok := key.SourceOf(name)
		switch {
		case !ok || source.In != key.Header || around.Controls(z.live.Name, source.Name):
		case slices.Contains(forwarding, source.Name):
			warn(source.String(), trustInstead.With())
			return
		case i == 0 && z.live.Template.HasAddress && slices.Contains(ofBrowsers, source.Name):
			warn(source.String(), leaveOut.With())
			return
		}
	}
}

// ofBrowsers are headers in which clients describe themselves.
var ofBrowsers = []string{"User-Agent", "Accept", "Accept-Language", "Accept-Encoding", "Referer", "Origin", "Sec-Ch-Ua", "Sec-Ch-Ua-Platform", "Cookie"}

// withQuery has the placeholders that hold a whole query string, and those of the path alone.
var withQuery = map[string]string{
	"http.request.uri": "http.request.uri.path", "http.request.orig_uri": "http.request.orig_uri.path",
	"http.request.uri.query": "http.request.uri.path", "http.request.orig_uri.query": "http.request.orig_uri.path",
	"http.request.uri.prefixed_query": "http.request.uri.path", "http.request.orig_uri.prefixed_query": "http.request.orig_uri.path",
}

// bracedName matches a placeholder in a text.
var bracedName = regexp.MustCompile(`\{([^{}]+)\}`)

// isChosen reports whether a client chooses what is at a place: not if a handler sets or removes the
// field, nor for the length of the body, which the server checks.
func isChosen(s key.Source, zone string, around *routes.Routes) bool {
	return s.In != key.Header || s.Name != "Content-Length" && !around.Controls(zone, s.Name)
}

// instead says what to do so that clients do not choose what is at a place.
func instead(s key.Source) advice.Text {
	if s.In == key.Header {
		return chosenHeader.With(s.Name)
	}
	return lookUp.With()
}

// warnAboutLending warns about zones whose lend brings nothing: the store does not lend, or requests
// meet other zones too, for which each of them asks the store.
func (h *Handler) warnAboutLending() {
	var lend, others []string
	for _, z := range h.zones {
		if h.RateLimits[z.Name].Lend != nil {
			lend = append(lend, z.Name)
		} else {
			others = append(others, z.Name)
		}
	}
	if len(lend) == 0 {
		return
	}
	if _, lends := h.store.Store.Store.(store.Shared); !lends {
		h.logger.Warn("lend has no effect: this store is not shared; "+shareStore.With().String(),
			zap.String("store", pool.Describe(h.store.Backend)), zap.Strings("zones", lend))
	} else if len(others) > 0 {
		h.logger.Warn("some zones have lend and others do not: a request that meets zones of both kinds still asks the store",
			zap.Strings("lend", lend), zap.Strings("others", others))
	}
}

// warnAboutKey warns about keys that are the same for all clients, or say too much.
func (z *Zone) warnAboutKey(log *zap.Logger) {
	t := z.live.Template
	if !t.Varies() {
		if meant := placeholder.Meant(z.Key); meant != "" {
			log.Warn(fmt.Sprintf("key %q is a constant, so all clients share one limit; %s", z.Key, writeBraces.With(placeholder.Written(meant))))
		}
		return
	}
	if !slices.ContainsFunc(t.Parts, func(p key.Part) bool { return p.Placeholder != "" && !placeholder.IsConstant(p.Placeholder) }) {
		log.Warn(fmt.Sprintf("key %q is the same for all requests, so all clients share one limit; %s", z.Key, writeBraces.With("{client_ip}, in JSON {http.vars.client_ip}")))
	}
	if longest := 64; z.IPv6Prefix > longest && t.HasAddress {
		log.Warn(fmt.Sprintf("ipv6_prefix %d: a client with one IPv6 address usually has all that begin with the same %d bits, and gets a new limit with each; %s",
			z.IPv6Prefix, longest, shorten.With()))
	}
	if fields := t.Fields(); len(fields) > 0 && len(fields) == t.NumPlaceholders() {
		log.Warn(fmt.Sprintf("key %q: any client can write fields of a body, and gets a new limit with each value; %s", z.Key, addClient.With()))
	}
	for _, p := range t.Parts {
		if p.Placeholder == "http.request.body" {
			log.Warn("the key contains the body of requests, so passwords in a body show up on the command line, in logs and in Redis; " + leaveBody.With().String())
		}
	}
}

// secretLength is how long the value of a header must be to pass for a secret.
const secretLength = 16

// warnAboutHeaders warns about matchers that exempt any client that sends a header.
func warnAboutHeaders(exempt caddyhttp.RawMatcherSets, log *zap.Logger) {
	for _, set := range exempt {
		var fields http.Header
		if len(set) != 1 || json.Unmarshal(set["header"], &fields) != nil {
			continue // another matcher has to match as well
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			guessable := func(value string) bool { return len(value) < secretLength || strings.ContainsAny(value, "*") }
			if len(fields[name]) == 0 || slices.ContainsFunc(fields[name], guessable) {
				log.Warn(fmt.Sprintf("exempt matches a header that any client can send, %s; %s", name, proveExempt.With(secretLength)))
			}
		}
	}
}

// warnAboutProxies warns about matchers that exempt all clients behind a proxy, which is the other end of their
// connections.
func warnAboutProxies(exempt caddyhttp.RawMatcherSets, clients *clientip.Source, log *zap.Logger) {
	for _, set := range exempt {
		var remote struct{ Ranges []string }
		if clients == nil || json.Unmarshal(set["remote_ip"], &remote) != nil {
			continue
		}
		for _, proxy := range clients.Trusted {
			if i := slices.IndexFunc(remote.Ranges, func(exempted string) bool { return clientip.Overlap(exempted, proxy) }); i >= 0 {
				log.Warn(fmt.Sprintf("exempt remote_ip %s contains the trusted proxy %s, so all clients behind it are exempt; %s", remote.Ranges[i], proxy, matchClient.With()))
				return
			}
		}
	}
}

// warnAboutDistributed warns if a config is meant for a fleet, but its store is not shared.
func (h *Handler) warnAboutDistributed() {
	if h.Distributed != nil && !h.store.Store.Remote {
		h.logger.Warn("distributed has no effect: this instance counts on its own, so a fleet of N instances admits N times the limit; "+shareStore.With().String(),
			zap.String("store", pool.Describe(h.store.Backend)))
	}
}
