package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// admin sends a request to the admin endpoint. Any status other than 200 and 204 is an error. A question
// that comes while the endpoint is being replaced is asked again, see sendAcross.
func (s *server) admin(method, path, contentType, body string) (text string, err error) {
	for range 3 {
		text, err = s.adminOnce(method, path, contentType, body)
		if method != http.MethodGet || !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
			break
		}
	}
	return text, err
}

func (s *server) adminOnce(method, path, contentType, body string) (string, error) {
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
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(s.dir, "admin"))
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

// load replaces the config.
func (s *server) load(caddyfile string) error {
	return s.configure("POST", "/load", "text/caddyfile", caddyfile)
}

// mustLoad replaces the config or ends the test.
func (s *server) mustLoad(caddyfile string) {
	s.t.Helper()
	if err := s.load(caddyfile); err != nil {
		s.t.Fatal(err)
	}
}

// patch changes one value of the config.
func (s *server) patch(path, value string) error {
	return s.configure("PATCH", path, "application/json", value)
}

// configure changes the config. From then on no request meets the config before.
func (s *server) configure(method, path, contentType, body string) error {
	s.t.Helper()
	if err := s.change(method, path, contentType, body); err != nil {
		return err
	}
	patient.Until(s.t, "the servers before to stop", func() bool {
		stacks, err := s.stacks()
		return err == nil && !stopping(stacks)
	})
	return nil
}

// stacks returns Caddy's own list of goroutines.
func (s *server) stacks() (string, error) {
	return s.admin("GET", "/debug/pprof/goroutine?debug=2", "", "")
}

// stopsServers is in the stack of each goroutine that stops servers.
const stopsServers = "caddyhttp.(*App).stop"

// stopping reports whether a server may still accept connections, or answer requests on idle ones, although it is
// being stopped. Caddy says that a change is done when the goroutines that stop servers have begun.
func stopping(stacks string) bool {
	for goroutine := range strings.SplitSeq(stacks, "\n\n") {
		state, functions, _ := strings.Cut(goroutine, "\n")
		waitsFor := "[sync.WaitGroup.Wait" // the other goroutines
		if strings.Contains(functions, ").Shutdown(") {
			waitsFor = "[select" // the requests that are being answered
		}
		if strings.Contains(functions, stopsServers) && !strings.Contains(state, waitsFor) {
			return true
		}
	}
	return false
}

// change sends a request that changes something, and repeats it if the connection breaks: each load
// replaces the admin server, and the next request may still reach the server that is closing. A
// repeated change has no effect.
func (s *server) change(method, path, contentType, body string) (err error) {
	s.t.Helper()
	patient.Until(s.t, "the admin endpoint to answer", func() bool {
		_, err = s.admin(method, path, contentType, body)
		return !errors.As(err, new(*url.Error))
	})
	return err
}

// find returns the admin path of a field of a zone, wherever the Caddyfile adapter puts the handler.
func (s *server) find(zone, field string) string {
	s.t.Helper()
	text, err := s.admin("GET", "/config/", "", "")
	if err != nil {
		s.t.Fatal(err)
	}
	var config any
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		s.t.Fatal(err)
	}
	end := "/rate_limits/" + zone + "/" + field
	if path := findSuffix(config, "/config", end); path != "" {
		return path
	}
	s.t.Fatalf("no %s in %s", end, text)
	return ""
}

func findSuffix(value any, path, end string) string {
	if strings.HasSuffix(path, end) {
		return path
	}
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if found := findSuffix(member, path+"/"+name, end); found != "" {
				return found
			}
		}
	case []any:
		for i, member := range value {
			if found := findSuffix(member, path+"/"+strconv.Itoa(i), end); found != "" {
				return found
			}
		}
	}
	return ""
}
