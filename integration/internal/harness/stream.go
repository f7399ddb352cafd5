package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// Stream reads decisions from the admin API.
func (s *Server) Stream(query string) io.ReadCloser {
	s.T.Helper()
	return s.Events("decisions" + query)
}

// Events reads server-sent events from the admin API.
func (s *Server) Events(path string) io.ReadCloser {
	s.T.Helper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(s.Dir, "admin"))
		},
	}}
	response, err := client.Get("http://127.0.0.1/rate_limit/" + path)
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		text, _ := io.ReadAll(response.Body)
		s.T.Fatalf("%s: %s", response.Status, text)
	}
	return response.Body
}

// SeenDecision is an event of the stream.
type SeenDecision struct {
	KeyState
	Outcome  string   `json:"outcome"`
	Path     string   `json:"path"`
	Decision KeyState `json:"decision"`
	Skipped  uint64   `json:"skipped"`
}

// NextDecision reads the next decision; false at the end of the stream.
func NextDecision(t *testing.T, lines *bufio.Scanner) (d SeenDecision, ok bool) {
	t.Helper()
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(data), &d); err != nil {
				t.Fatal(err)
			}
			return d, true
		}
	}
	return d, false
}
