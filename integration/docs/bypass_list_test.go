//go:build deep

package docs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// bypass is a way to try to get past a limit that is used up.
type bypass struct {
	name    string
	invents bool // it makes up clients: another zone may refuse it, too
	proxied bool // also tried behind the proxy
	tries   func(v *victim, plain try) []try
	never   string // why no config could let it through
}

// victim is what a bypass may know of a zone.
type victim struct {
	limitedZone
	wildcard bool   // its site has any host
	text     string // the zone, in JSON
	invented *int
}

// fresh returns a text that was not there before.
func (v *victim) fresh() string {
	*v.invented++
	return fmt.Sprint("made-up-", *v.invented)
}

func (v *victim) freshAddress() string {
	*v.invented++
	return fmt.Sprintf("198.18.%d.%d", *v.invented/250%250, *v.invented%250+1)
}

// named are the fields, parameters and cookies that a zone names anywhere.
func (v *victim) named(what string) (names []string) {
	for _, match := range regexp.MustCompile(`http\.request\.`+what+`\.([A-Za-z0-9_-]+)\}`).FindAllStringSubmatch(v.text, -1) {
		names = append(names, match[1])
	}
	return names
}

// addresses are values for a field with an address: a new one, and those that the zone treats apart.
func (v *victim) addresses() []string {
	special := regexp.MustCompile(`\b\d+\.\d+\.\d+\.\d+\b`).FindAllString(v.text, 5)
	return append([]string{v.freshAddress(), "127.0.0.1"}, special...)
}

// each makes a try of each value.
func each(values []string, f func(string) try) (tries []try) {
	for _, value := range values {
		tries = append(tries, f(value))
	}
	return tries
}

// lines returns a bypass that adds header lines.
func lines(name string, all ...string) bypass {
	return bypass{name: name, tries: func(_ *victim, q try) []try { return []try{q.with(all...)} }}
}

// pathAs returns a bypass that writes the path in another way.
func pathAs(name string, spell ...func(string) string) bypass {
	return bypass{name: name, tries: func(_ *victim, q try) (tries []try) {
		for _, f := range spell {
			tries = append(tries, q.at(f(q.path())))
		}
		return tries
	}}
}

// more is how many clients are made up: more than share a limit by anything else.
const more = small + 1

// inLetters changes the letters of a path.
func inLetters(change func(string) string) func(string) string {
	return func(p string) string { return regexp.MustCompile(`[a-z]`).ReplaceAllStringFunc(p, change) }
}

func behind(suffix string) func(string) string { return func(p string) string { return p + suffix } }

func before(prefix string) func(string) string { return func(p string) string { return prefix + p } }

// spoof returns a bypass that names another address in a field.
func spoof(field, form string) bypass {
	return bypass{name: field + " by the client", proxied: field == "X-Forwarded-For" || field == "CF-Connecting-IP", tries: func(v *victim, q try) []try {
		return each(v.addresses(), func(a string) try { return q.with(field + ": " + fmt.Sprintf(form, a)) })
	}}
}

// invent returns a bypass that sends a new value of a field, and of each field that the zone names.
func invent(name, what, form string, fields ...string) bypass {
	return bypass{name: name, invents: true, tries: func(v *victim, q try) (tries []try) {
		for range more {
			all := q
			for _, field := range append(slices.Clone(fields), v.named(what)...) {
				value := strings.ReplaceAll(form, "*", v.fresh())
				switch what {
				case "header":
					all = all.set(field, value)
				case "cookie":
					all = all.set("Cookie", field+"="+value)
				default:
					all.target = all.path() // one value of each parameter
					all = all.query(field + "=" + value)
				}
			}
			tries = append(tries, all)
		}
		return tries
	}}
}

// onKey returns a bypass that changes the lines of the key.
func onKey(name string, invents bool, change func(v *victim, q try, field, value string) []try) bypass {
	return bypass{name: name, invents: invents, tries: func(v *victim, q try) (tries []try) {
		for _, field := range v.named("header") {
			value, _ := q.field(field)
			tries = append(tries, change(v, q, field, value)...)
		}
		return tries
	}}
}

// neverFound returns a bypass that shows what other parts of a server do.
func neverFound(why string, w bypass) bypass {
	w.never = why
	return w
}

// methods returns a bypass that sends other methods.
func methods(name string, all ...string) bypass {
	return bypass{name: name, tries: func(_ *victim, q try) []try {
		return each(all, func(m string) try { q := q; q.method = m; return q })
	}}
}

// swapCase changes the case of all letters.
func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 32
		case 'A' <= r && r <= 'Z':
			return r + 32
		}
		return r
	}, s)
}

// bypasses are what is tried against each example. The test fails if one of them finds nothing in the
// bad examples.
var bypasses = []bypass{
	spoof("X-Forwarded-For", "%s"), spoof("X-Real-IP", "%s"), spoof("CF-Connecting-IP", "%s"), spoof("True-Client-IP", "%s"),
	spoof("X-Client-IP", "%s"), spoof("X-Cluster-Client-IP", "%s"), spoof("Fastly-Client-IP", "%s"), spoof("X-Original-Forwarded-For", "%s"),
	spoof("Forwarded", "for=%s"),
	{name: "a chain in X-Forwarded-For", proxied: true, tries: func(v *victim, q try) []try {
		return []try{
			q.with("X-Forwarded-For: " + v.freshAddress() + ", " + proxyAddress), q.with("X-Forwarded-For: unknown, " + v.freshAddress() + ":80"),
			q.with("X-Forwarded-For: "+v.freshAddress(), "X-Forwarded-For: "+v.freshAddress()), q.with("x-forwarded-for:\t" + v.freshAddress()),
		}
	}},
	lines("another host or path in a field", "X-Forwarded-Host: other.test", "X-Host: other.test", "X-Forwarded-Proto: ftp", "X-Forwarded-Port: 1",
		"X-Original-URL: /other", "X-Rewrite-URL: /other", "X-Forwarded-Prefix: /other"),

	invent("a new key", "header", "*", "X-Api-Key"), invent("a new key as a parameter", "uri.query", "*", "key"),
	invent("a new cookie", "cookie", "*", "session"), invent("a new user id", "header", "*", "X-User", "X-User-Id", "X-Tenant"),
	invent("a new Authorization", "header", "Bearer *", "Authorization"),
	{name: "a new host", invents: true, tries: func(v *victim, q try) (tries []try) {
		for range more {
			_, rest, _ := strings.Cut(q.host, ".")
			if other := q; v.wildcard {
				other.host = v.fresh() + "." + rest
				tries = append(tries, other)
			}
		}
		return tries
	}},
	onKey("no key", true, func(_ *victim, q try, field, _ string) []try {
		return []try{q.without(field), q.set(field, ""), q.without(field), q.set(field, "")}
	}),
	neverFound("a request with different values of its key is refused", onKey("several keys", true, func(v *victim, q try, field, value string) (tries []try) {
		for range more {
			other := v.fresh()
			tries = append(tries, q.with(field+": "+other), q.without(field).with(field+": "+other, field+": "+value), q.set(field, value+","+other))
		}
		return append(tries, q.set(field, "").with(field+": "+value))
	})),
	neverFound("net/http brings names of fields into one form, and Caddy drops those with underscores",
		onKey("the key's field in another way", false, func(v *victim, q try, field, value string) []try {
			return []try{
				q.without(field).with(swapCase(field) + ":" + value), q.without(field).with(field + ":\t " + value + " \t"),
				q.without(field).with(field+":", "\t"+value), q.with(strings.ReplaceAll(field, "-", "_") + ": " + v.fresh()),
			}
		})),

	{name: "host in upper case", tries: func(_ *victim, q try) []try {
		q.host = strings.ToUpper(q.host)
		return []try{q}
	}},
	{name: "host with a dot or port", tries: func(_ *victim, q try) []try {
		return each([]string{".", ":80", ":8080", ".:80"}, func(s string) try { q := q; q.host += s; return q })
	}},
	{name: "a whole URL as the target", tries: func(v *victim, q try) []try {
		own, other := q, q
		own.target = "http://" + q.host + q.target
		other.target, other.host = own.target, v.fresh()
		return []try{own, other}
	}},
	{name: "a target without a path", tries: func(_ *victim, q try) []try {
		query, ok := strings.CutPrefix(q.target, "/")
		if !ok || q.path() != "/" {
			return nil
		}
		return each([]string{"http://" + q.host, "x:", "x:text"}, func(s string) try { q := q; q.target = s + query; return q })
	}},

	pathAs("path in upper case", strings.ToUpper, func(p string) string { return p[:min(2, len(p))-1] + swapCase(p[min(2, len(p))-1:]) }),
	pathAs("path with slashes and dots", before("/"), before("//"), before("/."), before("/a/.."), before("/a/b/../..")),
	pathAs("path with encoded slashes and dots", before("/%2e"), before("/a/%2e%2e"), before("/a%2f.."), before("/a/..%2f"), before("/%2f")),
	pathAs("encoded path", inLetters(func(s string) string { return fmt.Sprintf("%%%02x", s[0]) }), inLetters(func(s string) string { return fmt.Sprintf("%%%02X", s[0]) })),
	pathAs("path with an end", behind("/"), behind("//"), behind("/."), behind("%2f"), behind("."), behind("%20"), behind(";a=b"), behind("%3Ba"), behind(".json"), behind("/x/..")),
	{name: "other queries", tries: func(v *victim, q try) []try {
		return []try{q.query("a=1"), q.query(v.fresh()), q.query("_method=GET"), q.query("a;b")}
	}},
	{name: "a path that is exempt", tries: func(v *victim, q try) (tries []try) {
		for _, match := range regexp.MustCompile(`["^]/([a-z/_-]*[a-z])`).FindAllStringSubmatch(textOf(v.zone["exempt"]), -1) {
			for _, way := range []string{"/..", "%2f..", "/%2e%2e", "/../.", "/;/.."} {
				tries = append(tries, q.at("/"+match[1]+way+q.path()))
			}
		}
		return tries
	}},

	methods("GET, HEAD or OPTIONS", "GET", "HEAD", "OPTIONS"),
	methods("other methods", "POST", "PUT", "PATCH", "DELETE", "TRACE", "QUERY", "CONNECT", "PROPFIND", "X"),
	{name: "the method in another case", tries: func(_ *victim, q try) []try {
		return each([]string{strings.ToLower(q.method), q.method[:1] + strings.ToLower(q.method[1:])}, func(m string) try { q := q; q.method = m; return q })
	}},
	lines("a method in a field", "X-HTTP-Method-Override: GET", "X-HTTP-Method: DELETE", "X-Method-Override: OPTIONS"),
	lines("a preflight", "Origin: https://a.test", "Access-Control-Request-Method: GET"),

	{name: "a WebSocket", tries: func(_ *victim, q try) (tries []try) {
		q = q.without("Upgrade").without("Connection")
		for _, upgrade := range []string{"websocket", "WebSocket", "WEBSOCKET", "websocket, foo", "foo,websocket", "\twebsocket ", "websocket/13"} {
			tries = append(tries, q.with("Connection: Upgrade", "Upgrade: "+upgrade), q.with("connection: keep-alive, UPGRADE", "UPGRADE:"+upgrade))
		}
		return append(tries, q.with("Connection: Upgrade", "Upgrade: foo", "Upgrade: websocket"))
	}},
	{name: "HTTP/2", tries: func(_ *victim, q try) []try {
		q.http2 = true
		if _, upgrade := q.field("Upgrade"); upgrade || q.method == http.MethodConnect {
			return nil // HTTP/2 has no Upgrade
		}
		return []try{q}
	}},
	{name: "HTTP/1.0", tries: func(_ *victim, q try) []try {
		q.protocol = "HTTP/1.0"
		return []try{q, q.with("Connection: keep-alive")}
	}},
	{name: "Expect", tries: func(_ *victim, q try) []try { return []try{q.with("Expect: 100-continue")} }},
	{name: "a body", tries: func(_ *victim, q try) []try {
		if q.body != "" {
			return nil
		}
		chunked := q.with("Transfer-Encoding: chunked")
		if q.body = "a"; q.protocol == "HTTP/1.1" {
			chunked.body = "1\r\na\r\n0\r\n\r\n"
		}
		return []try{q, chunked}
	}},

	lines("fields of monitoring and bots", "User-Agent: Googlebot", "X-Monitoring: yes", "X-Internal: 1", "X-Critical: 1", "X-Debug: 1", "Purpose: prefetch"),
	{name: "a field that exempts", tries: func(v *victim, q try) (tries []try) {
		for _, match := range regexp.MustCompile(`"header":\{"([^"]+)":(?:\["([^"]*)"|null)`).FindAllStringSubmatch(textOf(v.zone["exempt"]), -1) {
			tries = append(tries, q.with(match[1]+": "+strings.ReplaceAll(match[2], "*", "x")))
		}
		return tries
	}},
	lines("fields of browsers and caches", "Cache-Control: no-cache", "Pragma: no-cache", "Range: bytes=0-0", "Sec-Fetch-Mode: cors", "Referer: https://a.test/",
		"X-Requested-With: XMLHttpRequest", "If-None-Match: *", "Accept-Encoding: br", "TE: trailers", "DNT: 1", "Max-Forwards: 0", "Via: 1.1 a"),
	{name: "a cost by the client", tries: func(v *victim, q try) (tries []try) {
		for _, cost := range []string{"0", "-1", "-1000000", "0.1", "x"} {
			costs := q
			for _, name := range append(v.costs(), "X-Tokens", "X-Tokens-Used", "X-Cost", "X-RateLimit-Cost", "X-Usage", "X-Use") {
				costs = costs.set(name, cost)
			}
			tries = append(tries, costs)
		}
		return tries
	}},
	{name: "a plan or limit by the client", tries: func(v *victim, q try) (tries []try) {
		for _, value := range append(v.plans(), "1000000", "unlimited", "pro") {
			plans := q
			for _, name := range append(v.limits(), "X-Quota", "X-Plan", "X-Tier", "X-RateLimit-Limit", "Plan") {
				plans = plans.set(name, value)
			}
			tries = append(tries, plans)
		}
		return tries
	}},
}

// textOf is a value in JSON.
func textOf(value any) string {
	text, _ := json.Marshal(value)
	return string(text)
}

// costs are the fields that costs come from.
func (v *victim) costs() []string {
	return namesIn(textOf([]any{v.zone["cost"], v.zone["cost_header"]}))
}

// limits are the fields that limits and plans come from.
func (v *victim) limits() []string {
	plan, _ := v.zone["plan"].(object)
	return namesIn(textOf([]any{v.zone["max_events"], v.zone["window"], v.zone["burst"], plan["of"], plan["plans"]}))
}

func namesIn(text string) (names []string) {
	for _, match := range regexp.MustCompile(`http\.request\.header\.([A-Za-z0-9-]+)`).FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	return names
}

// plans are the names of the zone's plans.
func (v *victim) plans() (names []string) {
	plan, _ := v.zone["plan"].(object)
	plans, _ := plan["plans"].(object)
	for name := range plans {
		names = append(names, name)
	}
	return names
}
