package walk_test

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
)

// TestWalk: a walk comes to the same handlers with the same request as the server itself.
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
			meets: "1 (host a.test); 1.1 (path /a*); 1.1.1; mark decides:; 1.2 has a group of which one is taken; 1.3; mark decides:",
		},
		"handle: none but the last": {
			caddyfile: `
				handle /a* {
					mark first
				}
				handle {
					mark second
				}`,
			request: get("GET", "http://a.test/b"), marks: "second GET /b",
			meets: "misses path /a*",
		},
		"handle: each of one group only once, also in an error route": {
			caddyfile: `
				handle /a* {
					mark first 429
				}
				handle {
					mark second
				}
				handle_errors {
					handle /a* {
						mark "error {err.status_code}"
					}
					handle {
						mark "other error"
					}
				}`,
			request: get("GET", "http://a.test/abc"), marks: "first GET /abc; error 429 GET /abc",
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
		"route keeps the order that is written": {
			caddyfile: `
				route {
					mark before
					rewrite * /new
					mark behind
				}`,
			request: get("GET", "http://a.test/old"), marks: "before GET /old; behind GET /new",
		},
		"without route, rewrite comes first": {
			caddyfile: `
				mark behind
				rewrite * /new`,
			request: get("GET", "http://a.test/old"), marks: "behind GET /new",
		},
		"error routes: the original request, and what the error says": {
			caddyfile: `
				route {
					rewrite * /changed
					mark refuses 429
				}
				handle_errors {
					mark "{err.status_code} {err.message}"
				}`,
			request: get("GET", "http://a.test/orig"), marks: "refuses GET /changed; 429 refused by refuses GET /orig",
		},
		"error routes: the original method": {
			caddyfile: `
				route {
					method POST
					mark refuses 429
				}
				handle_errors {
					mark error
				}`,
			request: get("GET", "http://a.test/"), marks: "refuses POST /; error GET /",
		},
		"error routes by status": {
			caddyfile: `
				mark refuses 403
				handle_errors 429 {
					mark "not this"
				}
				handle_errors 4xx {
					mark this
				}`,
			request: get("GET", "http://a.test/"), marks: "refuses GET /; this GET /",
		},
		"an error that no error route matches ends": {
			caddyfile: `
				mark refuses 500
				handle_errors 429 {
					mark "not this"
				}`,
			request: get("GET", "http://a.test/"), marks: "refuses GET /",
		},
		"an error in an error route": {
			caddyfile: `
				mark first 403
				handle_errors {
					mark second 500
				}`,
			request: get("GET", "http://a.test/"), marks: "first GET /; second GET /", status: 500,
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
			meets: "error ends: refuses the request with status 418",
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
		"a variable that matches": {
			caddyfile: `
				@gold vars class gold
				route {
					vars class gold
					mark @gold gold
				}`,
			request: get("GET", "http://a.test/"), marks: "gold GET /",
		},
		"captures of path_regexp reach a rewrite behind": {
			caddyfile: `
				@user path_regexp u ^/users/(\d+)/(.*)$
				route @user {
					rewrite * /{re.u.2}?id={re.u.1}
					mark "{re.u.1}"
				}`,
			request: get("GET", "http://a.test/users/42/photos"), marks: "42 GET /photos?id=42",
		},
		"request headers are changed for matchers behind": {
			caddyfile: `
				@added header X-Added yes
				route {
					request_header X-Added yes
					request_header -X-Gone
					mark @added "added, {header.X-Gone} gone"
				}`,
			request: get("GET", "http://a.test/", "X-Gone", "here"), marks: "added,  gone GET /",
		},
		"method": {
			caddyfile: `
				route {
					method POST
					mark now
					@post method POST
					mark @post post
				}`,
			request: get("GET", "http://a.test/"), marks: "now POST /; post POST /",
			meets: "rewrite ran: the request is now POST /",
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
		"invoke goes through a named route and comes back": {
			caddyfile: `
				route {
					mark before
					invoke shared
					mark after
				}`,
			request: get("GET", "http://a.test/"), marks: "before GET /; shared GET /; after GET /",
		},
		"invoke of a route that refuses": {
			caddyfile: `
				route {
					invoke refuses
					mark after
				}`,
			request: get("GET", "http://a.test/"), marks: "refused GET /", status: 429,
		},
		"what answers ends the walk": {
			caddyfile: `
				route {
					mark before
					respond /r* ok
					mark behind
				}`,
			request: get("GET", "http://a.test/r"), marks: "before GET /r",
			meets: "mark decides:; static_response ends:",
		},
		"a mark that answers": {
			caddyfile: `
				route {
					mark answers ends
					mark behind
				}`,
			request: get("GET", "http://a.test/"), marks: "answers GET /",
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
		"basic_auth without a password": {
			caddyfile: withPassword,
			request:   get("GET", "http://a.test/"), status: 401,
			meets: "authentication ends: refuses the request with status 401",
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
		"protocol https without TLS": {
			caddyfile: withTLS,
			request:   get("GET", "http://a.test/"), marks: "plain  GET /",
			meets: "misses protocol https",
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
		"an expression that fails": {
			caddyfile: `
				@bad expression int({header.X-N}) > 1
				mark @bad yes
				mark no`,
			request: get("GET", "http://a.test/", "X-N", "many"), status: 500,
		},
		"not, and sets of matchers": {
			caddyfile: `
				@m {
					not path /a* /b*
					method GET
				}
				mark @m yes
				mark no`,
			request: get("GET", "http://a.test/b"), marks: "no GET /b",
			meets: "1 misses not path /a* /b* (method GET, not path /a* /b*)",
		},
		"a request for another site": {
			caddyfile: `
				mark here`,
			request: get("GET", "http://b.test/"), marks: "another site GET /",
			meets: "1 misses host a.test",
		},
		"paths are compared in their normal form": {
			caddyfile: `
				route {
					mark /admin/* admin
					mark any
				}`,
			request: get("GET", "http://a.test/%61dmin/../ADMIN//x"), marks: "admin GET /%61dmin/../ADMIN//x; any GET /%61dmin/../ADMIN//x",
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
		"a proxy ends": {
			caddyfile: `
				route {
					mark before
					reverse_proxy 127.0.0.1:9
					mark behind
				}`,
			request: get("GET", "http://a.test/"), marks: "before GET /",
			meets: "reverse_proxy ends: is not asked",
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
			meets: "intercept assumed: is not run; its routes depend on the response",
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
