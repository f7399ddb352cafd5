//go:build deep

package keys_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// cells are what a limit can see of a target: zones with an event in an hour for each value of the key.
var cells = []struct{ name, matcher, zone string }{
	{"all", "", ""},
	{"match_all", "", "match path /*"},
	{"match_root", "", "match path /"},
	{"path", "", "key {path}"},
	{"orig_path", "", "key {http.request.orig_uri.path}"},
	{"query", "", "key {query.x}"},
	{"directive", "/*", ""},
}

// target is a way to write a request, and the plain target of the same resource. It is empty for what Caddy refuses.
type target struct {
	method, target, plain string
}

var long = strings.Repeat("a", 8000)

// targets are the ways of HTTP/1.
var targets = []target{
	{"GET", "http://a.test", "/"},
	{"GET", "http://a.test/", "/"},
	{"GET", "HTTP://A.TEST", "/"},
	{"GET", "http://a.test?x=1", "/?x=1"},
	{"GET", "http://", "/"},
	{"GET", "http:", "/"},
	{"GET", "http:?x=1", "/?x=1"},
	{"GET", "http://[::1]", "/"},
	{"GET", "x:", "/"},
	{"GET", "x:v1/chat", "/"},
	{"GET", "x:v1/chat?x=1", "/?x=1"},
	{"GET", "x:y://h/login", "/"},
	{"GET", "x:v1?x=http://h/login", "/?x=http://h/login"},
	{"GET", "mailto:a@b", "/"},
	{"GET", "a.test:80", "/"},
	{"GET", "http:login", "/"},
	{"GET", "http:/login", "/login"},
	{"GET", "http:///login", "/login"},
	{"GET", "https://a.test/LOGIN", "/login"},
	{"GET", "ftp://u:p@a.test:99//login", "/login"},
	{"GET", "*", "/*"},
	{"OPTIONS", "http://a.test", "/"},
	{"CONNECT", "a.test:80", "/"},
	{"CONNECT", "127.0.0.1:80", "/"},
	{"CONNECT", "[::1]:80", "/"},
	{"CONNECT", "a.test:80/login", "/login"},
	{"CONNECT", "/login", "/login"},
	{"CONNECT", "*", "/"},
	{"GET", "//", "/"},
	{"GET", "/..", "/"},
	{"GET", "/?", "/"},
	{"GET", "//h/login", "/h/login"},
	{"GET", "///login", "/login"},
	{"GET", "/./login", "/login"},
	{"GET", "/a/../login", "/login"},
	{"GET", "/%2e%2E/login", "/login"},
	{"GET", "/%2Flogin", "/login"},
	{"GET", "/%6Cogin", "/login"},
	{"GET", "/LOGIN?", "/login"},
	{"GET", "/login//", "/login/"},
	{"GET", "/LOGIN;x=1", "/login;x=1"},
	{"GET", "/LOG%00IN", "/log%00in"},
	{"GET", "/#F", "/%23f"},
	{"GET", `/\login`, "/%5clogin"},
	{"GET", `/a\..\login`, "/a%5C..%5Clogin"},
	{"GET", "/\u00e9", "/%C3%A9"},
	{"GET", "/" + strings.ToUpper(long), "/" + long},
	{"GET", "login", ""},
	{"GET", "a.test", ""},
	{"GET", "?x=1", ""},
	{"GET", "*/", ""},
	{"GET", "://a", ""},
	{"GET", `\login`, ""},
	{"GET", "/login%", ""},
	{"GET", "http://a.test#f", ""},
	{"OPTIONS", "*", ""}, // Go's server answers it
}

// targets2 are those of HTTP/2. A target of "-" is not sent.
var targets2 = []target{
	{"GET", "//", "/"},
	{"GET", "//h/login", "/h/login"},
	{"GET", "/a/../LOGIN", "/login"},
	{"GET", "/%2Flogin", "/login"},
	{"GET", "/#F", "/%23f"},
	{"GET", "*", "/*"},
	{"CONNECT", "-", "/"},
	{"GET", "-", ""},
	{"GET", "", ""},
	{"GET", "login", ""},
	{"GET", "x:v1/chat", ""},
	{"GET", "http://a.test", ""},
	{"GET", "http://a.test/login", ""},
	{"OPTIONS", "*", ""},
}

// targets3 are those of HTTP/3.
var targets3 = []target{
	{"GET", "//", "/"},
	{"GET", "//h/login", "/h/login"},
	{"GET", "/a/../LOGIN", "/login"},
	{"GET", "/%2Flogin", "/login"},
	{"CONNECT", "-", "/"},
	{"OPTIONS", "*", "/*"},
}

// ask1 sends a request byte for byte, and returns the status.
func ask1(t *testing.T, address, cell string, q target) int {
	t.Helper()
	conn := dial(t, func() (net.Conn, error) { return net.Dial("tcp", address) })
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: a.test\r\nX-Cell: %s\r\nConnection: close\r\n\r\n", q.method, q.target, cell); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: q.method})
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

func dial(t *testing.T, open func() (net.Conn, error)) net.Conn {
	t.Helper()
	conn, err := open()
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(patient.Patience))
	}
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// ask2 sends the frames of a request, and returns the status, or 400 if the server refuses the stream or the connection.
func ask2(t *testing.T, address, cell string, q target) (status int) {
	t.Helper()
	conn := dial(t, func() (net.Conn, error) {
		return tls.Dial("tcp", address, &tls.Config{NextProtos: []string{"h2"}, ServerName: "localhost", InsecureSkipVerify: true}) //nolint:gosec // the test's own
	})
	defer conn.Close()
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	var head bytes.Buffer
	encoder, frames := hpack.NewEncoder(&head), http2.NewFramer(conn, conn)
	frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	fields := [][2]string{{":method", q.method}, {":authority", "a.test"}, {":scheme", "https"}, {":path", q.target}, {"x-cell", cell}}
	for i, field := range fields {
		if q.target == "-" && field[0] == ":path" || q.method == http.MethodConnect && (i == 2 || i == 3) {
			continue
		}
		if err := encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := frames.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	if err := frames.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head.Bytes(), EndStream: true, EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
	for {
		frame, err := frames.ReadFrame()
		if err != nil {
			t.Fatalf("%+v: %v", q, err)
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			if _, err := fmt.Sscan(f.PseudoValue("status"), &status); err != nil {
				t.Fatal(err)
			}
			return status
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return http.StatusBadRequest
		}
	}
}

// ask3 sends a request that the client of HTTP/3 allows, and returns the status.
func ask3(t *testing.T, v harness.Version, cell string, q target) int {
	t.Helper()
	r, err := http.NewRequest(q.method, v.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.URL.Path = q.target; q.method == http.MethodConnect {
		r.URL = &url.URL{Scheme: "https", Host: r.URL.Host}
	} else if p, err := url.ParseRequestURI(q.target); err == nil {
		r.URL.Path, r.URL.RawPath = p.Path, p.RawPath
	}
	r.Header.Set("X-Cell", cell)
	response, err := v.Client.Do(r)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// TestTargets: each way to write the target of a request is limited as the plain target of the resource that the upstream
// gets, or Caddy refuses it, whatever a limit sees of a target. So none of them reaches the upstream.
func TestTargets(t *testing.T) {
	t.Parallel()
	b := harness.StartBackend(t, func(_ *harness.Backend, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	site := ""
	for _, c := range cells {
		site += fmt.Sprintf(`
			@%[1]s header X-Cell %[1]s
			route @%[1]s {
				rate_limit %[2]s {
					zone %[1]s {
						rate 1/1h
						%[3]s
					}
				}
				reverse_proxy {$UPSTREAM}
			}`, c.name, c.matcher, c.zone)
	}
	s, versions := harness.StartEveryVersion(t, "", site, b.Variable())
	secure := strings.TrimPrefix(versions[1].URL, "https://")
	asks := []func(cell string, q target) int{
		func(cell string, q target) int { return ask1(t, s.Address, cell, q) },
		func(cell string, q target) int { return ask2(t, secure, cell, q) },
		func(cell string, q target) int { return ask3(t, versions[2], cell, q) },
	}
	tried := 0
	for version, all := range [][]target{targets, targets2, targets3} {
		for _, c := range cells {
			for _, q := range all { // the plain ones first, so that all limits are used up
				for range 2 {
					if q.plain != "" {
						asks[0](c.name, target{"GET", q.plain, ""})
					}
				}
			}
			for _, q := range all {
				if c.name == "match_root" && !strings.HasPrefix(q.plain, "/?") && q.plain != "/" && q.plain != "" {
					continue
				}
				tried++
				before := len(b.Came())
				got, want := asks[version](c.name, q), http.StatusTooManyRequests
				switch {
				case q.method == http.MethodOptions && q.plain == "":
					want = http.StatusOK
				case q.plain == "":
					want = http.StatusBadRequest
				}
				if came := len(b.Came()) - before; got != want || came != 0 {
					t.Errorf("HTTP/%d, %s: %.60q: status %d, want %d, and %d requests came", version+1, c.name, q, got, want, came)
				}
			}
		}
	}
	t.Logf("%d requests in %d cells", tried, len(cells))
	s.Sound(t)
}
