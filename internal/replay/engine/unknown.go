package engine

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/replay"
	"github.com/seed-161337e5/caddyratelimit/internal/replay/logs"
)

// unknown notes what logs do not tell about requests.
type unknown struct {
	late    int64 // requests that come after later ones
	servers int64 // requests for which there is no server
	invalid int64 // requests that a server refuses before its routes
	failed  int64 // requests that could not be decided
	before  int64 // requests that a limit has refused when the log was written
	why     error // the first of those that could not be decided

	handlers map[string]string // that are not run, with what is assumed
	redacted map[string]int64  // requests, by the header that is redacted
	proxies  proxies
}

// see notes what the record of a request does not have.
func (u *unknown) see(r *logs.Record) {
	if r.Status == http.StatusTooManyRequests {
		u.before++
	}
	for name, values := range r.Header {
		if slices.Contains(values, logs.Redacted) {
			u.redacted[name]++
		}
	}
}

// assume notes what was assumed about a handler that is not run.
func (u *unknown) assume(name, note string) {
	if _, known := u.handlers[name]; !known {
		u.handlers[name] = note
	}
}

// fail notes a request that could not be decided.
func (u *unknown) fail(why error) {
	if u.failed++; u.why == nil {
		u.why = why
	}
}

// list returns all that is not known, what is about zones first.
func (u *unknown) list(e *engine, formats []*logs.Format) []replay.Unknown {
	all := []replay.Unknown{}
	add := func(one replay.Unknown) {
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	u.proxies.report(e.tallies.requests, add)
	for _, used := range e.needs.uses {
		if used.zone != "" {
			u.use(used, formats, add)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.config.zones())) {
		z := e.config.zones()[name]
		if slices.Contains(e.needs.looks, name) {
			add(replay.Unknown{Zone: name, Option: "enforce", What: "what looks at {http.rate_limit.exceeded." + name + "}, such as routes", Assumed: "taken as if it had no value"})
		}
		for _, f := range formats {
			if z.CountsSlots() && !f.Duration {
				add(replay.Unknown{Zone: name, Option: "algorithm", What: "how long requests took", Assumed: "assumed that each ends at once"})
			}
		}
	}
	for _, used := range e.needs.uses {
		if used.zone == "" {
			u.use(used, formats, add)
		}
	}
	for _, z := range e.config.zones() {
		if z.Overrides { // said once, because a config of ten zones has it ten times
			add(replay.Unknown{What: "overrides and bans that were set by hand", Assumed: "assumed that there were none"})
		}
	}
	for _, f := range formats {
		u.format(e, f, add)
	}
	if e.needs.inner {
		add(replay.Unknown{What: "which requests reached error routes", Assumed: "assumed: only those that a limit refuses"})
	}
	for _, store := range e.needs.stores {
		add(replay.Unknown{What: "what store " + store + " had counted before", Assumed: "the replay counts in memory, from zero"})
	}
	for _, name := range slices.Sorted(maps.Keys(u.handlers)) {
		add(replay.Unknown{What: "handler " + name, Assumed: strings.TrimPrefix(u.handlers[name], "is not run; ")})
	}
	u.requests(add)
	return all
}

// notJudged is what the report says of a zone that cannot be judged.
const notJudged = "such requests are not judged in this zone"

// what says in words what is looked at.
func (u *use) what() string {
	switch u.part {
	case requestHeader:
		return "header " + u.name
	case cookie:
		return "cookie " + u.name
	case responseHeader:
		return "response header " + u.name
	}
	if u.name == requestBody || u.name == responseBody {
		return u.name
	}
	return "{" + u.name + "}"
}

// use adds a part of requests that logs do not have.
func (u *unknown) use(used use, formats []*logs.Format, add func(replay.Unknown)) {
	one := replay.Unknown{Zone: used.zone, Option: used.option, What: used.what(), Assumed: "treated as empty"}
	if used.zone != "" && used.decides() {
		one.Assumed = notJudged
	}
	switch used.part {
	case other:
		if used.option == chargeJSON {
			one.What, one.Assumed = used.name, "each request costs what it does without this option"
		}
		add(one)
	case responseHeader:
		if used.option == chargeHeader {
			one.What += ", which this option removes before the log"
		}
		if used.option == chargeHeader || slices.ContainsFunc(formats, func(f *logs.Format) bool { return !f.RespHeader.Has(used.name) }) {
			one.Assumed = "treated as not sent where the log lacks it"
			add(one)
		}
	case requestHeader, cookie:
		field := used.name
		if used.part == cookie {
			field = "Cookie"
		}
		if slices.ContainsFunc(formats, func(f *logs.Format) bool { return !f.Header.Has(field) }) {
			add(one)
		}
		if n := u.redacted[field]; n > 0 {
			if one.What, one.Count = one.What+", which is redacted", n; used.part == requestHeader && one.Assumed != notJudged {
				one.Assumed = "all its values count as one"
			}
			add(one)
		}
	}
}

// format adds what no line of a format has.
func (u *unknown) format(e *engine, f *logs.Format, add func(replay.Unknown)) {
	if !f.Host {
		add(replay.Unknown{What: "the host", Assumed: "assumed: " + e.maker.host})
	}
	if !f.Scheme {
		add(replay.Unknown{What: "whether requests came over TLS", Assumed: "assumed that they did where the server has TLS"})
	}
	if f.Hashed {
		add(replay.Unknown{What: "addresses of clients, which a filter of the log has hashed", Assumed: "each hash counts as an address: 0bd1a5c8 as 2001:db8:bd1:a5c8::"})
	}
	if f.Cut {
		add(replay.Unknown{What: "the ends of addresses of clients, which a filter of the log has cut", Assumed: "each network counts as one client"})
	}
	if !f.Fractions {
		add(replay.Unknown{What: "fractions of a second", Assumed: "requests of the same second come at its start, in the order of the log"})
	}
}

// requests adds what is about some requests.
func (u *unknown) requests(add func(replay.Unknown)) {
	for _, c := range []struct {
		n             int64
		what, assumed string
	}{
		{u.before, "what clients would have sent if their requests had not been refused with status 429", "they are replayed as they are"},
		{u.late, "when requests were decided, if their lines come more than a minute late", "decided at the time of the lines before"},
		{u.servers, "which server received requests", "they are left out"},
		{u.invalid, "requests without a valid host or URI, which no server passes to its routes", "they are left out"},
	} {
		if c.n > 0 {
			add(replay.Unknown{What: c.what, Assumed: c.assumed, Count: c.n})
		}
	}
	if u.failed > 0 {
		add(replay.Unknown{What: fmt.Sprintf("what would happen to requests that fail (first: %.200s)", u.why), Assumed: "they are not counted", Count: u.failed})
	}
}
