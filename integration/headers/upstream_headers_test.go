//go:build deep

package headers_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// startLimitedUpstream starts a server that has limits of its own, and does everything that a
// proxy must pass on.
func startLimitedUpstream(t *testing.T) *httptest.Server {
	t.Helper()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Add("RateLimit", `"upstream";r=7;t=1`)
		header.Add("RateLimit-Policy", `"upstream";q=7;w=1`)
		header.Add("RateLimit-Policy", `"upstream 2";q=7;w=1`)
		header.Set("X-RateLimit-Limit", "7")
		header.Set("X-Quota", "7")
		header.Set("X-Zone", r.Header.Get("X-Zone"))
		switch r.URL.Path {
		case "/hints":
			header.Set("Link", "</style.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
		case "/trailers":
			header.Set("Trailer", "X-Sum, RateLimit")
			_, _ = io.WriteString(w, "body")
			header.Set("X-Sum", "42")
			header.Set(http.TrailerPrefix+"RateLimit-Policy", `"upstream";q=7;w=1`)
		case "/socket":
			connection, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer connection.Close()
			_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nRateLimit: \"upstream\";r=7\r\n\r\n")
			_ = rw.Flush()
			line, _ := rw.ReadString('\n')
			_, _ = rw.WriteString(line)
			_ = rw.Flush()
		case "/stream":
			for range 3 {
				_, _ = io.WriteString(w, "part ")
				_ = http.NewResponseController(w).Flush()
			}
		}
	}))
	t.Cleanup(upstream.Close)
	return upstream
}

// wantOurs checks fields that both the limiter and the upstream set.
func wantOurs(t *testing.T, what string, header http.Header, zone string) {
	t.Helper()
	limits, policies := header.Values("RateLimit"), header.Values("RateLimit-Policy")
	if len(limits) != 1 || !strings.HasPrefix(limits[0], `"`+zone+`";r=`) || len(policies) != 1 || !strings.HasPrefix(policies[0], `"`+zone+`";q=1000`) {
		t.Errorf("%s: RateLimit %q, RateLimit-Policy %q", what, limits, policies)
	}
	if quota := header.Values("X-Quota"); len(quota) != 1 || quota[0] != "1000" {
		t.Errorf("%s: X-Quota %q", what, quota)
	}
	if other := header.Values("X-RateLimit-Limit"); len(other) != 1 || other[0] != "7" {
		t.Errorf("%s: the upstream's X-RateLimit-Limit, which is not ours here, is %q", what, other)
	}
}

const headersSite = `
	header Access-Control-Allow-Origin *
	header -Server
	header >X-Late late
	encode gzip
	rate_limit {
		zone proxied {
			events 1000
			window 1h
		}
		zone tight {
			match path /tight
			events 0
			window 1h
		}
		headers draft-10 x-ratelimit
		header_name X-RateLimit-Limit X-Quota
	}
`

// TestUpstreamHeadersAreReplaced: in every version of HTTP, our fields replace the upstream's,
// and those of other handlers stay.
func TestUpstreamHeadersAreReplaced(t *testing.T) {
	t.Parallel()
	upstream := startLimitedUpstream(t)
	proxy := headersSite + `
	reverse_proxy ` + upstream.Listener.Addr().String() + ` {
		header_up X-Zone {http.rate_limit.zone}
	}`
	s, versions := harness.StartEveryVersion(t, "", proxy)
	for _, to := range versions {
		for _, path := range []string{"/plain", "/stream", "/trailers", "/tight"} {
			response, body := fetch(t, to.Client, to.URL+path)
			what := fmt.Sprintf("HTTP/%d %s", to.Major, path)
			if response.ProtoMajor != to.Major {
				t.Errorf("%s: over HTTP/%d", what, response.ProtoMajor)
			}
			header := response.Header
			if header.Get("Access-Control-Allow-Origin") != "*" || header.Get("X-Late") != "late" || header["Server"] != nil {
				t.Errorf("%s: what the header directive does is lost: %v", what, header)
			}
			if path == "/tight" {
				if response.StatusCode != 429 || header.Get("Retry-After") != "3600" || !strings.HasPrefix(header.Get("RateLimit"), `"tight";r=0`) {
					t.Errorf("%s: status %d, %v", what, response.StatusCode, header)
				}
				continue
			}
			wantOurs(t, what, header, "proxied")
			if zone := header.Get("X-Zone"); zone != "proxied" {
				t.Errorf("%s: the upstream saw zone %q", what, zone)
			}
			if path == "/stream" && body != "part part part " {
				t.Errorf("%s: body %q", what, body)
			}
			if trailer := response.Trailer; path == "/trailers" && (trailer.Get("X-Sum") != "42" || strings.Contains(fmt.Sprint(trailer), "upstream")) {
				t.Errorf("%s: trailer %v", what, trailer)
			}
		}
	}
	earlyHints(t, s)
	throughUpgrade(t, s)
	// Encode compresses through a writer of its own.
	response, _ := fetch(t, harness.NewClient(t, ""), s.URL("/plain"), "Accept-Encoding", "gzip")
	wantOurs(t, "encode", response.Header, "proxied")
}

// fetch sends a GET request, in any version of HTTP.
func fetch(t *testing.T, client *http.Client, url string, header ...string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// earlyHints: an informational response passes, and the upstream's fields are still replaced in
// the final one.
func earlyHints(t *testing.T, s *harness.Server) {
	t.Helper()
	hints := 0
	trace := &httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error { hints++; return nil }}
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, s.URL("/hints"), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := harness.NewClient(t, "").Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if hints != 1 {
		t.Errorf("%d early hints, want 1", hints)
	}
	wantOurs(t, "/hints", response.Header, "proxied")
}

// throughUpgrade: a connection can become something else, such as a WebSocket.
func throughUpgrade(t *testing.T, s *harness.Server) {
	t.Helper()
	connection, err := net.Dial("tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(patient.Patience))
	_, _ = io.WriteString(connection, "GET /socket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	reader := bufio.NewReader(connection)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	if limits := response.Header.Values("RateLimit"); response.StatusCode != 101 || len(limits) != 1 || !strings.HasPrefix(limits[0], `"proxied"`) {
		t.Errorf("upgrade: status %d, RateLimit %q", response.StatusCode, limits)
	}
	_, _ = io.WriteString(connection, "hello\n")
	if line, err := reader.ReadString('\n'); line != "hello\n" {
		t.Errorf("upgrade: echo %q, %v", line, err)
	}
}
