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
	"pgregory.net/rapid"

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
	lists := map[string]*caddyhttp.Server{}
	for _, underscores := range []string{`[]`, `["remote_user"]`, `["remote_*"]`, `["a_.b","x_y_z"]`} {
		for _, dots := range []string{`[]`, `["remote.user"]`, `["remote.*"]`, `["a_.b"]`} {
			options := fmt.Sprintf(`"expected_underscore_headers":%s,"expected_dot_headers":%s,`, underscores, dots)
			lists[options] = admits(t, options)
		}
	}
	names := []string{"Remote-User", "Remote_user", "Remote.user", "Remote_user.x", "Remote-Group", "Remote_group", "Remote.group", "A_.b", "A--B", "X_y_z", "X-Y-Z", "X-Y", "Plain"}
	rapid.Check(t, func(rt *rapid.T) {
		options := rapid.SampledFrom(slices.Sorted(maps.Keys(lists))).Draw(rt, "options")
		header := make(http.Header)
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID).Draw(rt, "names") {
			header[name] = make([]string, rapid.IntRange(1, 2).Draw(rt, "values"))
		}
		left := func(send func(*http.Request)) string {
			r := get("GET", "http://a.test/")()
			r.Header = header.Clone()
			send(r)
			return fmt.Sprint(slices.Sorted(maps.Keys(r.Header)))
		}
		want := left(func(r *http.Request) { served(lists[options], r) })
		got := left(func(r *http.Request) {
			if err := walk.Admit(lists[options], r); err != nil {
				rt.Fatal(err)
			}
		})
		if got != want {
			rt.Errorf("%s %v\nCaddy leaves %s\nthe walk      %s", options, header, want, got)
		}
	})
}
