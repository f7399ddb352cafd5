package placeholder_test

import (
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// TestReadersEqualReplacer: the readers of the usual placeholders find what Caddy's replacer finds.
func TestReadersEqualReplacer(t *testing.T) {
	texts := []string{
		"", "@", ":", ":80", "a.test", "A.test:80", "a.test:", "a.test.", "a:b:c", "::1", "[::1]", "[::1]:80", "[::1]x:80", "[a", "a]:1",
		"[fe80::1%eth0]:1", "[fe80::1%25eth0]:1", "192.0.2.1", "192.0.2.1:1", "[::ffff:192.0.2.1]:1", "/run/a.sock", "\x00", "\xff:1", "a.test,b.test:1",
	}
	values := []any{
		nil, "", "text", 1, int64(-2), 2.5, float32(1), true, byte('a'), 'b', []byte("bytes"),
		[]string{"a", "b"},
		[]any{1, nil},
		map[string]any{"a": 1},
		errors.New("an error"), netip.MustParseAddr("::1"),
		struct{ A int }{1},
	}
	states := []*tls.ConnectionState{nil, {}, {HandshakeComplete: true}}
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	for range 5000 {
		r := &http.Request{
			Method: http.MethodGet, Header: make(http.Header), Host: pick(texts), RemoteAddr: pick(texts), TLS: states[random.IntN(len(states))],
			URL: &url.URL{Path: pick(texts), RawPath: pick(texts)},
		}
		repl := caddy.NewReplacer()
		r = caddyhttp.PrepareRequest(r, repl, httptest.NewRecorder(), new(caddyhttp.Server))
		caddyhttp.SetVar(r.Context(), "any", values[random.IntN(len(values))])
		repl.Set("other", pick(texts))
		r.URL.Path = pick(texts) // as a rewrite does
		request := placeholder.RequestOf(r)
		for _, name := range []string{
			"http.request.remote.host", "http.request.host", "http.request.uri.path", "http.vars.client_ip", "http.vars.trusted_proxy",
			"http.vars.any", "http.vars.unset", "http.vars.", "http.request.method", "other", "unknown",
		} {
			want, _ := repl.GetString(name)
			if got := placeholder.Reader(name)(&request); got != want {
				t.Errorf("{%s} of host %q, remote %q, vars %v: got %q, Caddy's replacer has %q", name, r.Host, r.RemoteAddr, request.Vars, got, want)
			}
		}
	}
}

// TestReadersTakeNoMemory: a key of the usual placeholders needs no memory of its own, also of a host without a port.
func TestReadersTakeNoMemory(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "http://a.test/path", nil)
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), httptest.NewRecorder(), new(caddyhttp.Server))
	caddyhttp.SetVar(r.Context(), caddyhttp.ClientIPVarKey, "192.0.2.1")
	request := placeholder.RequestOf(r)
	for _, name := range []string{"http.vars.client_ip", "http.request.host"} {
		read := placeholder.Reader(name)
		if n := testing.AllocsPerRun(1000, func() { _ = read(&request) }); n != 0 {
			t.Errorf("{%s}: %.0f allocations", name, n)
		}
	}
}
