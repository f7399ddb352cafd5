package walk_test

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
)

// TestWalk: a walk comes to the same handlers with the same request as the server itself. TestRandomConfigs has routes,
// matchers and handlers in all orders; here is what they are called, and what it has not.
func TestWalk(t *testing.T) {
	for name, c := range map[string]struct {
		caddyfile string
		request   func() *http.Request
		marks     string // in order, separated by "; "
		status    int    // of the error that ends the walk
		meets     string // some of what it meets, in order, separated by "; "
	}{
		"handle: the first that matches": {
			caddyfile: `
				handle /a* {
					mark first
				}
				handle {
					mark second
				}
				mark behind`,
			request: get("GET", "http://a.test/abc"), marks: "first GET /abc; behind GET /abc",
			meets: "1 (host a.test); 1.1 (path /a*); 1.1.1; mark decides:; 1.3; mark decides:",
		},
		"handle_path strips for what is inside": {
			caddyfile: `
				handle_path /api/* {
					mark "inside {http.request.orig_uri.path}"
				}
				route {
					mark behind
				}`,
			request: get("GET", "http://a.test/api/v1?q=1"), marks: "inside /api/v1 GET /v1?q=1; behind GET /v1?q=1",
			meets: "rewrite ran: the request is now GET /v1?q=1",
		},
		"error ends, and its message is a placeholder": {
			caddyfile: `
				route {
					error /teapot "no {path}" 418
					mark passes
				}
				handle_errors {
					mark "{err.status_code} {err.message}"
				}`,
			request: get("GET", "http://a.test/teapot"), marks: "418 no /teapot GET /teapot",
			meets: "error ends",
		},
		"vars, map and named matchers see each other": {
			caddyfile: `
				@gold vars class gold
				route {
					vars class {header.X-Class}
					map {http.vars.class} {limit} {
						gold    100
						~^b(.*) "b of ${1}"
						default 10
					}
					mark "{limit}"
					handle @gold {
						mark gold
					}
					handle {
						mark other
					}
				}`,
			request: get("GET", "http://a.test/", "X-Class", "bronze"), marks: "b of ronze GET /; other GET /",
			meets: "vars ran:; map ran:; mark decides:; misses vars class gold; mark decides:",
		},
		"try_files with query, on a file that is not there": {
			caddyfile: `
				root * /nonexistent
				route {
					try_files {path} /index.php?p={path}
					mark now
				}`,
			request: get("GET", "http://a.test/x"), marks: "now GET /x",
		},
		"what does not matter is passed": {
			caddyfile: `
				route {
					encode gzip
					log_append key value
					push * /style.css
					templates
					tracing
					mark behind
				}`,
			request: get("GET", "http://a.test/"), marks: "behind GET /",
			meets: "encode passed:; log_append passed:; push passed:; templates passed:; tracing passed:; mark decides:",
		},
		"basic_auth with one": {
			caddyfile: withPassword,
			request: func() *http.Request {
				r := get("GET", "http://a.test/")()
				user, password, _ := strings.Cut(secret, ":")
				r.SetBasicAuth(user, password)
				return r
			},
			marks: "alice GET /", meets: "authentication ran:",
		},
		"protocol https with it": {
			caddyfile: withTLS,
			request:   withState(get("GET", "http://a.test/"), tls.ConnectionState{HandshakeComplete: true, Version: tls.VersionTLS13, ServerName: "a.test"}),
			marks:     "secure a.test GET /",
		},
		"a handshake that is not complete": {
			caddyfile: withTLS,
			request:   withState(get("GET", "http://a.test/"), tls.ConnectionState{ServerName: "a.test"}),
			marks:     "early GET /; secure a.test GET /",
		},
		"a request for another site": {
			caddyfile: `
				mark here`,
			request: get("GET", "http://b.test/"), marks: "another site GET /",
			meets: "1 misses host a.test",
		},
		"forward_auth is assumed to pass": {
			caddyfile: `
				route {
					forward_auth 127.0.0.1:9 {
						uri /check
						copy_headers Remote-User
					}
					mark behind
				}`,
			request: get("GET", "http://a.test/"), marks: "behind GET /",
			meets: "reverse_proxy assumed: is not asked; assumed that it answers 200, with the {rp.header.*} that are given",
		},
		"a proxy whose response is handled only when it fails ends": {
			caddyfile: `
				route {
					reverse_proxy 127.0.0.1:9 {
						@bad status 5xx
						handle_response @bad {
							mark "not this"
						}
					}
					mark behind
				}`,
			request: get("GET", "http://a.test/"), meets: "reverse_proxy ends: is not asked",
		},
		"intercept is assumed to pass": {
			caddyfile: `
				route {
					intercept {
						replace_status 503
					}
					mark behind
				}`,
			request: get("GET", "http://a.test/"), marks: "behind GET /",
			meets: "intercept assumed: is not run; assumed that it passes the request on unchanged",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := load(t, adapt(t, named+"http://a.test {\n"+c.caddyfile+"\n}"+other), "")
			told, w := compare(t, server, c.request)
			if got := strings.Join(w.marks, "; "); got != c.marks || w.status != c.status {
				t.Errorf("it comes to %q, status %d; want %q, %d", got, w.status, c.marks, c.status)
			}
			meets := strings.Join(told.lines, "; ")
			for want := range strings.SplitSeq(c.meets, "; ") {
				if !strings.Contains(meets, want) {
					t.Errorf("no %q in what it meets: %s", want, meets)
				}
			}
		})
	}
}
