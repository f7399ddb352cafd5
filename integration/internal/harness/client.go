package harness

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/redistest"
)

// NewClient makes an HTTP client with its own address, which on Linux can be any of 127.0.0.0/8. With
// "" the system chooses it.
func NewClient(t *testing.T, from string) *http.Client {
	t.Helper()
	dialer := new(net.Dialer)
	if from != "" {
		if runtime.GOOS != "linux" {
			t.Skip("only Linux has all of 127.0.0.0/8 as addresses of this machine")
		}
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	transport := &http.Transport{
		DialContext:         dialer.DialContext,
		MaxIdleConnsPerHost: 1024,
		DisableCompression:  true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patient.Patience}
}

// Answer is the response that a client got.
type Answer struct {
	Status     int
	Header     http.Header
	Body       string
	Sent, Done time.Time
}

// Send sends a GET request. The header has names and values in turn.
func Send(client *http.Client, url string, header ...string) (Answer, error) {
	return send(context.Background(), client, http.MethodGet, url, "", header...)
}

func send(ctx context.Context, client *http.Client, method, url, body string, header ...string) (a Answer, err error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return a, err
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	a.Sent = time.Now()
	response, err := client.Do(request)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	a.Status, a.Header, a.Body, a.Done = response.StatusCode, response.Header, string(text), time.Now()
	return a, err
}

// SendAcross is [Send] while the server is being replaced.
func SendAcross(client *http.Client, url string, header ...string) (Answer, error) {
	return across(func() (Answer, error) { return Send(client, url, header...) })
}

// across sends a request while the server is being replaced. When a server of net/http shuts down, it
// closes connections with a request that it has read but not begun to handle (conn.serve). A client of
// net/http repeats the request, unless it was the first one on its connection. No handler has seen
// such a request.
func across(send func() (Answer, error)) (a Answer, err error) {
	for range 3 {
		a, err = send()
		if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
			break
		}
	}
	return a, err
}

// Get sends a GET request, and ends the test if there is no response.
func (s *Server) Get(client *http.Client, path string, header ...string) Answer {
	s.T.Helper()
	a, err := Send(client, s.URL(path), header...)
	if err != nil {
		s.T.Fatal(err)
	}
	return a
}

// Admitted sends n requests, one after the other, and counts the responses with status 200. Any status
// other than 200 and 429 ends the test.
func (s *Server) Admitted(client *http.Client, n int, path string, header ...string) (admitted int) {
	s.T.Helper()
	for range n {
		switch a := s.Get(client, path, header...); a.Status {
		case http.StatusOK:
			admitted++
		case http.StatusTooManyRequests:
		default:
			s.T.Fatalf("%s: status %d, want 200 or 429", path, a.Status)
		}
	}
	return admitted
}

// Pending is a request in progress.
type Pending struct {
	t      *testing.T
	Leave  context.CancelFunc // hangs up
	done   chan struct{}
	Answer Answer
	Err    error
}

// Begin sends a request on a connection of its own, and does not wait for the answer.
func (s *Server) Begin(path string, header ...string) *Pending {
	ctx, leave := context.WithCancel(s.T.Context())
	p := &Pending{t: s.T, Leave: leave, done: make(chan struct{})}
	client := NewClient(s.T, "")
	go func() {
		defer close(p.done)
		defer leave()
		p.Answer, p.Err = send(ctx, client, http.MethodGet, s.URL(path), "", header...)
	}()
	s.T.Cleanup(func() {
		leave()
		<-p.done
	})
	return p
}

// Result waits for the answer, as long as the client does.
func (p *Pending) Result() Answer {
	p.t.Helper()
	<-p.done
	if p.Err != nil {
		p.t.Fatal(p.Err)
	}
	return p.Answer
}

// Upgrade asks for a WebSocket. The connection stays open until the test ends.
func (s *Server) Upgrade(t *testing.T) (net.Conn, int) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_, err = io.WriteString(conn, "GET /socket HTTP/1.1\r\nHost: "+s.Address+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return conn, response.StatusCode
}

// Version is a client of one version of HTTP.
type Version struct {
	Major  int
	Client *http.Client
	URL    string
}

// StartEveryVersion starts a Caddy that serves a site with and without TLS, and returns
// a client for each version of HTTP.
func StartEveryVersion(t *testing.T, options, site string, variables ...string) (*Server, []Version) {
	t.Helper()
	config, versions := EveryVersion(t, options, site)
	s := StartCaddy(t, config, variables...)
	return s, versions(s)
}

// EveryVersion returns a config that serves a site with and without TLS, and a function that returns a client for
// each version of HTTP to a server with that config.
func EveryVersion(t *testing.T, options, site string) (config string, versions func(*Server) []Version) {
	t.Helper()
	port := redistest.FreePort(t)
	files := redistest.Certificate(t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(ReadPage(t, files.CA)))
	config = Caddyfile(options, site) + fmt.Sprintf(`
https://:%d {
	bind 127.0.0.1
	tls %s %s
	%s
}
`, port, files.Cert, files.Key, site)
	return config, func(s *Server) []Version {
		config := &tls.Config{RootCAs: roots, ServerName: "localhost"}
		h2 := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
		h3 := &http3.Transport{TLSClientConfig: config}
		t.Cleanup(h2.CloseIdleConnections)
		t.Cleanup(func() { _ = h3.Close() })
		url := fmt.Sprintf("https://127.0.0.1:%d", port)
		return []Version{
			{1, NewClient(t, ""), s.URL("")},
			{2, &http.Client{Transport: h2, Timeout: patient.Patience}, url},
			{3, &http.Client{Transport: h3, Timeout: patient.Patience}, url},
		}
	}
}
