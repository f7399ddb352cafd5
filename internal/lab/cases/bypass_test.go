//go:build deep

package cases_test

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/cases"
)

// reached is what the upstream answers to a request that came past a limit.
const reached = 299

// bypasses are ways to write a request that a limit has just refused, so that another limit or none may meet it. Each
// fails in one of badExamples at least, which shows that it is tried.
var bypasses = map[string]func(r *cases.Request) []cases.Request{
	"X-Forwarded-For":            adds("X-Forwarded-For: 198.18.0.1"),
	"X-Real-IP":                  adds("X-Real-IP: 198.18.0.1"),
	"CF-Connecting-IP":           adds("CF-Connecting-IP: 198.18.0.1"),
	"True-Client-IP":             adds("True-Client-IP: 198.18.0.1"),
	"Forwarded":                  adds("Forwarded: for=198.18.0.1"),
	"another host in a field":    adds("X-Forwarded-Host: other.test"),
	"another path in a field":    adds("X-Original-URL: /other", "X-Rewrite-URL: /other"),
	"a method in a field":        adds("X-HTTP-Method-Override: GET"),
	"a preflight":                adds("Origin: https://a.test", "Access-Control-Request-Method: GET"),
	"a WebSocket":                adds("Connection: keep-alive, UPGRADE", "Upgrade: WebSocket"),
	"fields of caches":           adds("Cache-Control: no-cache", "Range: bytes=0-0", "Purpose: prefetch", "If-None-Match: *"),
	"fields of monitoring":       adds("X-Monitoring: yes", "X-Internal: 1", "X-Debug: 1", "X-From-Us: true"),
	"another user agent":         adds("User-Agent: Googlebot/2.1"),
	"a cost":                     adds("X-Cost: 0", "X-Tokens: 0", "X-Tokens-Used: 0"),
	"a plan or limit":            adds("X-Quota: 1000000", "X-Plan: unlimited", "X-Tier: pro", "Plan: pro"),
	"GET, HEAD or OPTIONS":       methods(http.MethodGet, http.MethodHead, http.MethodOptions),
	"other methods":              methods("POST", "PUT", "PATCH", "DELETE", "PROPFIND", "X"),
	"host in upper case":         hostAs(strings.ToUpper),
	"host with a dot or port":    hostAs(behind("."), behind(":80"), behind(".:443")),
	"path in upper case":         pathAs(strings.ToUpper),
	"slashes and dots":           pathAs(before("/"), before("/."), before("/a/.."), before("/a/b/../..")),
	"encoded slashes and dots":   pathAs(before("/%2e"), before("/a/%2e%2e"), before("/a%2f.."), before("/%2f")),
	"an encoded path":            pathAs(func(p string) string { return regexp.MustCompile(`[a-z]`).ReplaceAllStringFunc(p, percent) }),
	"an end of the path":         pathAs(behind("/"), behind("//"), behind("/."), behind("%2f"), behind(";a=b"), behind(".json")),
	"a path that is exempt":      pathAs(before("/healthz/.."), before("/healthz%2f..")),
	"another query":              pathAs(behind("?a=1"), behind("?_method=GET"), behind("?a;b")),
	"an address of the same /64": from(func(a string) string { return a + "9" }),
}

// change makes a bypass of functions that change a copy of the request. Those that change nothing are left out.
func change(all ...func(r *cases.Request)) func(r *cases.Request) []cases.Request {
	return func(r *cases.Request) (tries []cases.Request) {
		for _, f := range all {
			try := *r
			try.Header = slices.Clone(r.Header)
			if f(&try); fmt.Sprint(try) != fmt.Sprint(*r) {
				tries = append(tries, try)
			}
		}
		return tries
	}
}

func adds(fields ...string) func(r *cases.Request) []cases.Request {
	return change(func(r *cases.Request) { r.Header = append(r.Header, fields...) })
}

func methods(names ...string) func(r *cases.Request) []cases.Request {
	var all []func(*cases.Request)
	for _, name := range names {
		all = append(all, func(r *cases.Request) { r.Method = name })
	}
	return change(all...)
}

// wholeURL takes the parts of a URL.
var wholeURL = regexp.MustCompile(`^(?:(https?://)([^/]*))?([^?]*)(.*)$`)

func pathAs(spell ...func(string) string) func(r *cases.Request) []cases.Request {
	var all []func(*cases.Request)
	for _, f := range spell {
		all = append(all, func(r *cases.Request) {
			u := wholeURL.FindStringSubmatch(r.URL)
			path := f(u[3])
			if u[4] != "" {
				path = strings.Replace(path, "?", "&", 1)
				u[4], path = u[4]+strings.TrimPrefix(path, u[3]), u[3]
			}
			r.URL = u[1] + u[2] + path + u[4]
		})
	}
	return change(all...)
}

func hostAs(spell ...func(string) string) func(r *cases.Request) []cases.Request {
	var all []func(*cases.Request)
	for _, f := range spell {
		all = append(all, func(r *cases.Request) {
			if u := wholeURL.FindStringSubmatch(r.URL); u[2] != "" {
				r.Header = append(r.Header, "Host: "+f(u[2]))
			}
		})
	}
	return change(all...)
}

func from(f func(string) string) func(r *cases.Request) []cases.Request {
	return change(func(r *cases.Request) {
		if strings.HasSuffix(r.From, "::") {
			r.From = f(r.From)
		}
	})
}

func behind(end string) func(string) string   { return func(s string) string { return s + end } }
func before(begin string) func(string) string { return func(s string) string { return begin + s } }
func percent(s string) string                 { return fmt.Sprintf("%%%02x", s[0]) }

// gaps tries all bypasses behind the first request of a case that a limit refuses, and returns those that reach the
// upstream.
func gaps(t *testing.T, config []byte, f *cases.File, c *cases.Case) (found []string) {
	t.Helper()
	at := slices.IndexFunc(c.Steps, func(s cases.Step) bool {
		return s.Request != nil && (s.Request.By != "" || s.Request.Passes() >= 0 && s.Request.Passes() < s.Request.Repeat)
	})
	if at < 0 {
		return nil
	}
	steps, names := slices.Clone(c.Steps[:at+1]), slices.Sorted(maps.Keys(bypasses))
	model := parse(t, fmt.Sprintf("case x {\n\tGET / any answer %d status %[1]d\n}\n", reached)).Cases[0].Steps[0].Request
	tried := make(map[int]string)
	for _, name := range names {
		plain := *model
		plain.Request = c.Steps[at].Request.Request
		for _, try := range bypasses[name](&plain) {
			line := 100_000 + len(tried)
			tried[line] = name + ": " + fmt.Sprint(try.Method, " ", try.URL, " ", try.Header)
			steps = append(steps, cases.Step{Line: line, Request: &try})
		}
	}
	for _, r := range run(t, config, &cases.File{Name: f.Name, URL: f.URL, Cases: []*cases.Case{{Name: c.Name, Steps: steps}}}) {
		for _, failure := range r.Failures {
			delete(tried, failure.Line)
		}
	}
	return slices.Sorted(maps.Values(tried))
}

// accepted are bypasses that get through a recipe, and why that is right.
var accepted = map[string]string{
	"many-sites: host with a dot or port": "no site has a host with a dot, so nothing is reached",
	"tenants: host with a dot or port":    "no site has a host with a dot, so nothing is reached",
	"writes: GET, HEAD or OPTIONS":        "reading comments counts in the other zone alone",
}

// TestBypasses: no way around a limit that a client could try gets past a recipe, once a case has used the limit up.
func TestBypasses(t *testing.T) {
	used := make(map[string]bool)
	for f, caddyfile := range recipes(t) {
		config := adapt(t, caddyfile)
		for _, c := range f.Cases {
			for _, gap := range gaps(t, config, f, c) {
				bypass, _, _ := strings.Cut(gap, ":")
				at := filepath.Base(filepath.Dir(f.Name)) + ": " + bypass
				if used[at] = true; accepted[at] == "" {
					t.Errorf("%s, case %s: %s", at, c.Name, gap)
				}
			}
		}
	}
	for at := range accepted {
		if !used[at] {
			t.Errorf("%s is accepted, but does not happen", at)
		}
	}
}

// badExamples are zones with a hole, by the bypass that finds it.
var badExamples = map[string]string{
	"X-Forwarded-For":            "key {vars.x-forwarded-for}",
	"X-Real-IP":                  "key {vars.x-real-ip}",
	"CF-Connecting-IP":           "key {vars.cf-connecting-ip}",
	"True-Client-IP":             "key {vars.true-client-ip}",
	"Forwarded":                  "key {vars.forwarded}",
	"another host in a field":    "key {vars.x-forwarded-host}",
	"another path in a field":    "key {vars.x-original-url}",
	"a method in a field":        "match not header X-HTTP-Method-Override *",
	"a preflight":                "match not header Access-Control-Request-Method *",
	"a WebSocket":                "match not header Connection *UPGRADE*",
	"fields of caches":           "match not header Range *",
	"fields of monitoring":       "exempt header X-Monitoring yes",
	"another user agent":         "exempt header User-Agent *Googlebot*",
	"a cost":                     "cost {header.X-Cost} 1",
	"a plan or limit":            "events {header.X-Quota} 5",
	"GET, HEAD or OPTIONS":       "match not method HEAD",
	"other methods":              "match method GET",
	"host in upper case":         "key {vars.host}",
	"host with a dot or port":    "key {vars.hostport}",
	"path in upper case":         "key {vars.path}",
	"slashes and dots":           "key {vars.path}",
	"encoded slashes and dots":   "key {vars.path}",
	"an encoded path":            "key {vars.uri}",
	"an end of the path":         "match path /login",
	"a path that is exempt":      "exempt expression `{http.request.orig_uri}.startsWith(\"/healthz\")`",
	"another query":              "key {uri}",
	"an address of the same /64": "key {client_ip}\nipv6_prefix 128",
}

// TestBypassesAreTried: each bypass finds the hole that it is for.
func TestBypassesAreTried(t *testing.T) {
	fields := ""
	for _, name := range []string{"X-Forwarded-For", "X-Real-IP", "CF-Connecting-IP", "True-Client-IP", "Forwarded", "X-Forwarded-Host", "X-Original-URL"} {
		fields += fmt.Sprintf("%s {header.%s}\n", strings.ToLower(name), name) // a variable joins the values of a field
	}
	for name := range bypasses {
		zone := badExamples[name]
		limit := "rate 5/1m\n"
		if strings.Contains(zone, "events") {
			limit = "window 1m\n"
		}
		config := adapt(t, ":80 {\nvars {\nhost {host}\nhostport {hostport}\npath {path}\nuri {http.request.orig_uri}\n"+fields+"}\nrate_limit {\nzone bad {\n"+limit+zone+"\n}\n}\nreverse_proxy localhost:9000\n}\n")
		f := parse(t, "case bad {\n\tGET http://a.test/login from 2001:db8:: repeat 6 pass 5\n}\n")
		if found := gaps(t, config, f, f.Cases[0]); !slices.ContainsFunc(found, func(gap string) bool { return strings.HasPrefix(gap, name+": ") }) {
			t.Errorf("%s is not found in a zone with %q", name, zone)
		}
	}
}
