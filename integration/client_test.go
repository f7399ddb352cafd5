package integration_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// newClient makes an HTTP client with its own address, which on Linux can be any of 127.0.0.0/8. With
// "" the system chooses it.
func newClient(t *testing.T, from string) *http.Client {
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

// answer is the response that a client got.
type answer struct {
	status     int
	header     http.Header
	body       string
	sent, done time.Time
}

// send sends a GET request. The header has names and values in turn.
func send(client *http.Client, url string, header ...string) (answer, error) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return answer{}, err
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	a := answer{sent: time.Now()}
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	a.done = time.Now()
	a.status, a.header, a.body = response.StatusCode, response.Header, string(body)
	return a, nil
}

// sendAcross is send while the server is being replaced. When a server of net/http shuts down, it
// closes connections with a request that it has read but not begun to handle (conn.serve). A client of
// net/http repeats the request, unless it was the first one on its connection. No handler has seen
// such a request.
func sendAcross(client *http.Client, url string, header ...string) (a answer, err error) {
	for range 3 {
		a, err = send(client, url, header...)
		if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
			break
		}
	}
	return a, err
}

// get sends a GET request, and ends the test if there is no response.
func (s *server) get(client *http.Client, path string, header ...string) answer {
	s.t.Helper()
	a, err := send(client, s.url(path), header...)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// admitted sends n requests, one after the other, and counts the responses with status 200. Any status
// other than 200 and 429 ends the test.
func (s *server) admitted(client *http.Client, n int, path string, header ...string) (admitted int) {
	s.t.Helper()
	for range n {
		switch a := s.get(client, path, header...); a.status {
		case http.StatusOK:
			admitted++
		case http.StatusTooManyRequests:
		default:
			s.t.Fatalf("%s: status %d, want 200 or 429", path, a.status)
		}
	}
	return admitted
}

// quota is the item of the RateLimit field.
type quota struct {
	zone      string
	remaining int64
	next      int64 // seconds; 0: it has no t
}

// rateLimit reads the first item of the RateLimit field, which may be absent.
func rateLimit(header http.Header) (q quota, ok bool, err error) {
	lines := header.Values("RateLimit")
	if len(lines) == 0 {
		return q, false, nil
	}
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return q, false, fmt.Errorf("RateLimit %q: %w", lines, err)
	}
	if len(list) == 0 {
		return q, false, fmt.Errorf("RateLimit %q: no items", lines)
	}
	item, isItem := list[0].(httpsfv.Item)
	if !isItem {
		return q, false, fmt.Errorf("RateLimit %q: no item", lines)
	}
	zone, isText := item.Value.(string)
	remaining, _ := item.Params.Get("r")
	r, isNumber := remaining.(int64)
	if !isText || !isNumber {
		return q, false, fmt.Errorf("RateLimit %q: want a string with an integer r", lines)
	}
	after, _ := item.Params.Get("t")
	next, _ := after.(int64)
	return quota{zone, r, next}, true, nil
}

// policy reads the limit of a zone from the RateLimit-Policy field, or -1. This shows which of two
// configs has answered.
func policy(header http.Header, zone string) int64 {
	list, err := httpsfv.UnmarshalList(header.Values("RateLimit-Policy"))
	if err != nil {
		return -1
	}
	for _, member := range list {
		if item, ok := member.(httpsfv.Item); ok && item.Value == zone {
			if q, ok := item.Params.Get("q"); ok {
				return q.(int64)
			}
		}
	}
	return -1
}
