package engine

import (
	"cmp"
	"fmt"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
	"github.com/seed-161337e5/caddyratelimit/internal/replay"
)

// proxies notes requests whose clients may be behind a proxy that the config does not trust, or of which
// the log does not tell.
type proxies struct {
	unclear int64  // requests whose client is the other end of the connection
	carry   int64  // those of them that carry the address of a client
	field   string // in which the first of these carries it
	address string // of the first connection
	more    bool   // there are other connections
	trusts  bool   // a server trusts proxies

	resolved int64 // requests whose client is that of the log, which the config would not find out
}

// see notes a request whose client is known. Trusts says whether its server trusts proxies.
func (p *proxies) see(f *exchange, trusts bool) {
	r := f.record
	field := forwardedIn(r, f.server)
	switch remote := cmp.Or(r.RemoteIP, r.ClientIP); {
	case !trusts && f.client != remote && r.RemoteIP != "":
		p.resolved++
	case f.client == remote && (trusts || field != ""):
		if p.unclear == 0 {
			p.address = remote
		}
		p.unclear++
		p.trusts, p.more = p.trusts || trusts, p.more || remote != p.address
		if field != "" && !f.proxy {
			p.carry, p.field = p.carry+1, cmp.Or(p.field, field)
		}
	}
}

var trustProxies = advice.New("replay/trusted_proxies", "if that is a proxy, set trusted_proxies")

// report adds what is not known because of proxies. A few requests that carry the field are no sign of
// a proxy, because clients write it too.
func (p *proxies) report(requests int64, add func(replay.Unknown)) {
	const asLogged = "the client in the log counts"
	switch {
	case requests == 0:
	case p.unclear == requests && p.carry == requests && !p.more:
		add(replay.Unknown{What: fmt.Sprintf("all requests come from %s and carry %s", p.address, p.field), Assumed: asLogged + ": " + trustProxies.With().String()})
	case p.carry > requests/2:
		from := p.address
		if p.more {
			from += " and others"
		}
		add(replay.Unknown{What: fmt.Sprintf("requests from %s carry %s, and the config trusts no such proxy", from, p.field), Assumed: asLogged, Count: p.carry})
	case p.unclear == requests && p.trusts && !p.more && requests > 1:
		add(replay.Unknown{What: fmt.Sprintf("all requests come from %s, and the log does not name the clients behind it", p.address), Assumed: asLogged})
	}
	if p.resolved > 0 {
		add(replay.Unknown{What: "requests came through a proxy, and the config has no trusted_proxies", Assumed: asLogged + ", but this config would take the proxy for the client", Count: p.resolved})
	}
}
