package caddyratelimit

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
	"github.com/seed-161337e5/caddyratelimit/internal/pool"
	"github.com/seed-161337e5/caddyratelimit/internal/request/key"
	"github.com/seed-161337e5/caddyratelimit/internal/request/zone"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// warn logs a warning, of a zone if it has a name, and keeps it, so that doctor repeats it.
func (h *Handler) warn(zone, text string) {
	log := h.logger
	if zone != "" {
		log = log.With(zap.String("zone", zone))
	}
	log.Warn(text)
	h.warnings[zone] = append(h.warnings[zone], text)
}

// warnAboutZone warns about options that do not do what they seem to do.
func (h *Handler) warnAboutZone(z *zone.Zone) {
	warn := func(text string) { h.warn(z.Name, text) }
	if p := z.Policy; p != nil && z.Cost.From == "" && z.Cost.Number > p.MaxCost() && p.Numbers.Events > 0 {
		warn(fmt.Sprintf("the cost %d is above what the limit can ever allow, %d, so every request of this zone is refused; %s",
			z.Cost.Number, p.MaxCost(), lowerCost.With()))
	}
	if z.Plan != nil && !z.PlanTemplate.Varies() {
		if meant := placeholder.Meant(z.Plan.Of); meant != "" {
			warn(fmt.Sprintf("plan %q is a constant, so all clients have one plan; %s", z.Plan.Of, writeBraces.With(placeholder.Written(meant))))
		}
	}
	warnAboutKey(z, warn)
	warnAboutHeaders(z.ExemptRaw, warn)
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
	writeBraces  = advice.New("load/key/constant", "did you mean %s?")
	leaveBody    = advice.New("load/key/body", "match a part of it with vars_regexp instead, and take {re.<name>.1}, in JSON {http.regexp.<name>.1}, as the key")
	addClient    = advice.New("load/key/fields", "write {client_ip}, in JSON {http.vars.client_ip}, before it, and limit the client in another zone as well")
	lowerCost    = advice.New("load/cost", "raise the limit, or lower cost")
	proveExempt  = advice.New("load/exempt", "match addresses with client_ip as well, or a secret value of at least %d characters")
	fillHandler  = advice.New("load/zones", "add a zone to it, or remove it")
	shareStore   = advice.New("load/store", "write store redis { address <host:port> } for one limit of all instances")
)

// chosen says what any client can write in a placeholder of a key, as often as it likes, for a new limit each time: headers that
// only a proxy should write, whole query strings and bodies and, beside an address, what browsers say of themselves. It is empty otherwise.
func chosen(name string, besideAddress bool) (what string, fix advice.Text) {
	if uri := withQuery.FindStringSubmatch(name); uri != nil {
		return "the query string", usePath.With(placeholder.Written(uri[1] + ".path"))
	}
	if name == "http.request.body" {
		return "the body of a request, which may contain a password", leaveBody.With()
	}
	source, ok := key.SourceOf(name)
	switch {
	case !ok || source.In != key.Header:
	case slices.Contains(forwarding, source.Name):
		return source.String(), trustInstead.With()
	case besideAddress && slices.Contains(ofBrowsers, source.Name):
		return source.String(), leaveOut.With()
	}
	return "", fix
}

// ofBrowsers are headers in which clients describe themselves.
var ofBrowsers = []string{"User-Agent", "Accept", "Accept-Language", "Accept-Encoding", "Referer", "Origin", "Sec-Ch-Ua", "Sec-Ch-Ua-Platform", "Cookie"}

// withQuery matches the placeholders that hold a whole query string.
var withQuery = regexp.MustCompile(`^(http\.request\.(orig_)?uri)(\.(prefixed_)?query)?$`)

// warnAboutKey warns about keys that are the same for all clients, or that clients choose.
func warnAboutKey(z *zone.Zone, warn func(string)) {
	t := z.Template
	if meant := t.Meant(z.Key); meant != "" {
		warn(fmt.Sprintf("key %q is a constant, so all clients share one limit; %s", z.Key, writeBraces.With(placeholder.Written(meant))))
		return
	}
	if longest := 64; z.IPv6Prefix > longest && t.HasAddress {
		warn(fmt.Sprintf("ipv6_prefix %d: a client with one IPv6 address usually has all that begin with the same %d bits, and gets a new limit with each; %s",
			z.IPv6Prefix, longest, shorten.With()))
	}
	if fields := t.Fields(); len(fields) > 0 && len(fields) == t.NumPlaceholders() {
		warn(fmt.Sprintf("key %q: any client can write fields of a body, and gets a new limit with each value; %s", z.Key, addClient.With()))
	}
	for _, p := range t.Parts {
		if what, fix := chosen(p.Placeholder, t.HasAddress); what != "" {
			warn(fmt.Sprintf("key %q: any client can write %s, and gets a new limit with each value; %s", z.Key, what, fix))
		}
	}
}

// secretLength is how long the value of a header must be to pass for a secret.
const secretLength = 16

// warnAboutHeaders warns about matchers that exempt any client that sends a header.
func warnAboutHeaders(exempt caddyhttp.RawMatcherSets, warn func(string)) {
	for _, set := range exempt {
		var fields http.Header
		if len(set) != 1 || json.Unmarshal(set["header"], &fields) != nil {
			continue // another matcher has to match as well
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			guessable := func(value string) bool { return len(value) < secretLength || strings.ContainsAny(value, "*") }
			if len(fields[name]) == 0 || slices.ContainsFunc(fields[name], guessable) {
				warn(fmt.Sprintf("exempt matches a header that any client can send, %s; %s", name, proveExempt.With(secretLength)))
			}
		}
	}
}

// warnAboutStore warns about a config that is meant for a fleet, but whose store is not shared.
func (h *Handler) warnAboutStore() {
	if _, shared := h.store.Store.Store.(store.Shared); shared {
		return
	}
	lends := slices.ContainsFunc(h.zones, func(z *zone.Zone) bool { return z.Lend != nil })
	for name, is := range map[string]bool{"distributed": h.Distributed != nil, "lend": lends} {
		if is {
			h.warn("", fmt.Sprintf("%s has no effect: %s counts in this instance alone, so a fleet of N instances admits N times the limit; %s",
				name, pool.Describe(h.store.Backend), shareStore.With()))
		}
	}
}
