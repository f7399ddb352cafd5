package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/lab/replay/logs"
)

// unknown notes what logs do not tell about requests.
type unknown struct {
	late    int64 // requests that come after later ones
	invalid int64 // requests that a server refuses before its routes
	failed  int64 // requests that could not be decided
	before  int64 // requests that a limit has refused when the log was written
	why     error // the first of those that could not be decided

	handlers map[string]string // that are not run, with what is assumed
	proxies  proxies

	list []string
}

// assumed says what is not known if it is so, and what was assumed.
func (u *unknown) assumed(is bool, what, assumed string) {
	if text := what + "; " + assumed; is && !slices.Contains(u.list, text) {
		u.list = append(u.list, text)
	}
}

// some adds what is about some requests, if there are any.
func (u *unknown) some(n int64, what, assumed string) {
	u.assumed(n > 0, fmt.Sprintf("%s (%s requests)", what, replay.Count(n)), assumed)
}

// all returns all that is not known.
func (u *unknown) all(e *engine, formats []*logs.Format) []string {
	u.list = []string{}
	u.proxies.report(e.tallies, u)
	for _, use := range e.needs.uses {
		u.use(&use, formats)
	}
	zones := e.tallies.zones
	for _, name := range slices.Sorted(maps.Keys(zones)) {
		u.assumed(slices.Contains(e.needs.looks, name), "zone "+name+", enforce: what looks at {http.rate_limit.exceeded."+name+"}, such as routes",
			"taken as if it had no value")
		for _, f := range formats {
			u.assumed(zones[name].CountsSlots() && !f.Duration, "zone "+name+", algorithm: how long requests took", "assumed that each ends at once")
		}
		u.assumed(zones[name].Overrides, "overrides and bans that were set by hand", "assumed that there were none")
	}
	for _, f := range formats {
		u.assumed(!f.Host, "the host", "assumed: "+e.host)
		u.assumed(!f.Scheme, "whether requests came over TLS", "assumed that they did where the server has TLS")
		u.assumed(f.Hashed, "addresses of clients, which a filter of the log has hashed", "each hash counts as an address: 0bd1a5c8 as 2001:db8:bd1:a5c8::")
		u.assumed(f.Cut, "the ends of addresses of clients, which a filter of the log has cut", "each network counts as one client")
		u.assumed(!f.Fractions, "fractions of a second", "requests of the same second come at its start, in the order of the log")
	}
	u.assumed(e.needs.inner, "which requests reached error routes", "assumed: only those that a limit refuses")
	for _, name := range slices.Sorted(maps.Keys(u.handlers)) {
		u.assumed(true, "handler "+name, strings.TrimPrefix(u.handlers[name], "is not run; "))
	}
	u.some(u.before, "what clients would have sent if their requests had not been refused with status 429", "they are replayed as they are")
	u.some(u.late, "when requests were decided, if their lines come more than a minute late", "decided at the time of the lines before")
	u.some(u.invalid, "requests without a valid host or URI, which no server passes to its routes", "they are left out")
	u.some(u.failed, fmt.Sprintf("what would happen to requests that fail (first: %.200s)", u.why), "they are not counted")
	return u.list
}

// use adds a part of requests that logs do not have. The report of a zone says itself which of them it has not judged.
func (u *unknown) use(used *use, formats []*logs.Format) {
	what := used.what
	if used.zone != "" {
		what = "zone " + used.zone + ", " + used.option + ": " + what
	}
	lost := used.header == "" || slices.ContainsFunc(formats, func(f *logs.Format) bool {
		if used.response {
			return !f.RespHeader.Has(used.header)
		}
		return !f.Header.Has(used.header)
	})
	u.assumed(lost && !used.decides(), what, used.assumed)
}

// proxies notes requests whose clients may be behind a proxy that the config does not trust, or of which
// the log does not tell.
type proxies struct {
	direct   int64  // requests whose client is the other end of the connection
	carry    int64  // those of them that carry the address of a client, and come from nobody who is trusted
	field    string // in which the first of those has it
	address  string // from which that came, or the last one if none carries an address
	trusts   bool   // a server trusts proxies
	resolved int64  // requests whose client is that of the log, which the config would not find out
}

// see notes a request.
func (p *proxies) see(x *exchange) {
	if x.server == nil {
		return
	}
	field, trusts, remote := x.forwarded(), x.server.trusts, cmp.Or(x.RemoteIP, x.ClientIP)
	p.trusts = p.trusts || trusts
	if x.client == remote {
		if p.direct++; p.carry == 0 {
			p.field, p.address = field, remote
		}
		if field != "" && !x.proxy {
			p.carry++
		}
	} else if !trusts && x.RemoteIP != "" {
		p.resolved++
	}
}

var trustProxies = advice.New("replay/trusted_proxies", "if that is a proxy, set trusted_proxies")

// report adds what is not known because of proxies. A few requests that carry the field are no sign of
// a proxy, because clients write it too.
func (p *proxies) report(t *tallies, u *unknown) {
	const asLogged = "the client in the log counts"
	if p.carry > t.requests/2 {
		u.some(p.carry, fmt.Sprintf("requests carry %s, the first from %s", p.field, p.address), asLogged+": "+trustProxies.With().String())
	} else {
		u.assumed(p.trusts && p.direct == t.requests && p.direct > 1 && len(t.clients) == 1,
			fmt.Sprintf("all requests come from %s, and the log does not name the clients behind it", p.address), asLogged)
	}
	u.some(p.resolved, "requests came through a proxy, and the config has no trusted_proxies", asLogged+", but this config would take the proxy for the client")
}
