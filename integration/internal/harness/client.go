package harness

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
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
	return send(context.Background(), client, url, header)
}

func send(ctx context.Context, client *http.Client, url string, header []string) (a Answer, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
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
	body, err := io.ReadAll(response.Body)
	a.Status, a.Header, a.Body, a.Done = response.StatusCode, response.Header, string(body), time.Now()
	return a, err
}

// SendAcross is [Send] while the server is being replaced. When a server of net/http shuts down, it
// closes connections with a request that it has read but not begun to handle (conn.serve). A client of
// net/http repeats the request, unless it was the first one on its connection. No handler has seen
// such a request.
func SendAcross(client *http.Client, url string, header ...string) (a Answer, err error) {
	for range 3 {
		a, err = Send(client, url, header...)
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
