package walk_test

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/lab/walk"
)

// admits is a server whose only route marks, with what is left of the headers.
func admits(t testing.TB, options string) *caddyhttp.Server {
	t.Helper()
	return load(t, fmt.Appendf(nil, `{"apps":{"http":{"servers":{"s":{"listen":["127.0.0.1:0"],"automatic_https":{"disable":true},%s
		"routes":[{"handle":[{"handler":"mark","text":"here"}]}]}}}}}`, options), "")
}

// TestAdmit: the walk refuses what the server refuses before its routes, with the same status.
func TestAdmit(t *testing.T) {
	for name, c := range map[string]struct {
		options string
		change  func(r *http.Request)
		status  int
	}{
		"a method of 33":                  {change: func(r *http.Request) { r.Method = strings.Repeat("M", 33) }, status: 405},
		"no host":                         {change: func(r *http.Request) { r.Host = "" }, status: 400},
		"no host in HTTP/1.0":             {change: func(r *http.Request) { r.Host, r.Proto, r.ProtoMinor = "", "HTTP/1.0", 0 }},
		"only dots":                       {change: func(r *http.Request) { r.Host = "..." }, status: 400},
		"a host that is none":             {change: func(r *http.Request) { r.Host = "a b" }, status: 400},
		"a host with a byte that is none": {change: func(r *http.Request) { r.Host = "a\x80b" }, status: 400},
		"an address of IPv6":              {change: func(r *http.Request) { r.Host = "[2001:db8::1]" }},
		"another name in TLS": {
			options: `"strict_sni_host":true,`, status: 421,
			change: func(r *http.Request) { r.TLS = &tls.ConnectionState{ServerName: "b.test"} },
		},
		"the same name in TLS": {
			options: `"strict_sni_host":true,`,
			change: func(r *http.Request) {
				r.Host, r.TLS = "A.test:443", &tls.ConnectionState{ServerName: "a.Test"}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, w := compare(t, admits(t, c.options), func() *http.Request {
				r := get("GET", "http://a.test/")()
				c.change(r)
				return r
			})
			if w.status != c.status || (c.status == 0) != (len(w.marks) == 1) {
				t.Errorf("status %d (%v), %q, want %d", w.status, w.err, w.marks, c.status)
			}
		})
	}
}

// TestAdmitDropsAliases: the walk drops the headers that the server drops.
func TestAdmitDropsAliases(t *testing.T) {
	for options, want := range map[string]string{
		"": "[Plain Remote-User]",
		`"expected_underscore_headers":["remote_user"],"expected_dot_headers":["a.b"],`: "[A.b Plain Remote_user]",
	} {
		server := admits(t, options)
		left := func(send func(*http.Request)) string {
			r := get("GET", "http://a.test/")()
			for _, name := range []string{"Remote_user", "Remote.user", "A.b", "A_b", "Plain"} {
				r.Header[name] = []string{""}
			}
			if options == "" {
				r.Header["Remote-User"] = []string{""}
			}
			send(r)
			return fmt.Sprint(slices.Sorted(maps.Keys(r.Header)))
		}
		real := left(func(r *http.Request) { served(server, r) })
		got := left(func(r *http.Request) {
			if err := walk.Admit(server, r); err != nil {
				t.Fatal(err)
			}
		})
		if got != want || real != want {
			t.Errorf("%s: Caddy leaves %s, the walk %s, want %s", options, real, got, want)
		}
	}
}
