package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// Ask decodes an answer of the admin API.
func (s *Server) Ask(path string, answer any) {
	s.T.Helper()
	text, err := s.Admin("GET", path, "", "")
	if err == nil {
		err = json.Unmarshal([]byte(text), answer)
	}
	if err != nil {
		s.T.Fatalf("%s: %v\n%s", path, err, text)
	}
}

// Must sends a request to the admin API, and ends the test if it fails.
func (s *Server) Must(method, path, body string) {
	s.T.Helper()
	if _, err := s.Admin(method, path, "application/json", body); err != nil {
		s.T.Fatal(err)
	}
}

// Admin sends a request to the admin endpoint. Any status other than 200 and 204 is an error. A question
// that comes while the endpoint is being replaced is asked again, see SendAcross.
func (s *Server) Admin(method, path, contentType, body string) (text string, err error) {
	for range 3 {
		text, err = s.adminOnce(method, path, contentType, body)
		if method != http.MethodGet || !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
			break
		}
	}
	return text, err
}

func (s *Server) adminOnce(method, path, contentType, body string) (string, error) {
	request, err := http.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	// Loading a config replaces the endpoint, so connections are not reused.
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(s.Dir, "admin"))
		},
	}
	client := &http.Client{Transport: transport, Timeout: patient.Patience}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusNoContent {
		return "", fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	}
	return string(text), nil
}

// Stacks returns Caddy's own list of goroutines.
func (s *Server) Stacks() (string, error) {
	return s.Admin("GET", "/debug/pprof/goroutine?debug=2", "", "")
}

// Usage is what a key has used of a zone.
type Usage struct{ Used, Quota int64 }

// Spent asks what a key has used of a zone.
func (s *Server) Spent(zone, key string) (k Usage) {
	s.T.Helper()
	s.Ask("/rate_limit/zones/"+zone+"/key?key="+key, &k)
	return k
}

// AwaitUsed waits until a key has used so much of a zone.
func (s *Server) AwaitUsed(what, zone, key string, want int64) {
	s.T.Helper()
	patient.UntilEqual(s.T, what, func() int64 { return s.Spent(zone, key).Used }, want)
}
