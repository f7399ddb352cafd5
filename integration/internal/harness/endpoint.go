package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

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
// that comes while the endpoint is being replaced is asked again.
func (s *Server) Admin(method, path, contentType, body string) (text string, err error) {
	// Loading a config replaces the endpoint, so connections are not reused.
	client := &http.Client{Timeout: patient.Patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(s.Dir, "admin"))
		},
	}}
	ask := func() (Answer, error) {
		return send(context.Background(), client, method, "http://127.0.0.1"+path, body, "Content-Type", contentType)
	}
	var a Answer
	if method == http.MethodGet {
		a, err = across(ask)
	} else {
		a, err = ask()
	}
	if err == nil && a.Status != http.StatusOK && a.Status != http.StatusNoContent {
		err = fmt.Errorf("%s %s: %d: %s", method, path, a.Status, a.Body)
	}
	return a.Body, err
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

// Load replaces the config.
func (s *Server) Load(caddyfile string) error {
	return s.Configure("POST", "/load", "text/caddyfile", caddyfile)
}

// MustLoad replaces the config or ends the test.
func (s *Server) MustLoad(caddyfile string) {
	s.T.Helper()
	if err := s.Load(caddyfile); err != nil {
		s.T.Fatal(err)
	}
}

// Configure changes the config. From then on no request meets the config before. The request is repeated if the connection
// breaks: each load replaces the admin server, and the next request may still reach the server that is closing. A repeated
// change has no effect.
func (s *Server) Configure(method, path, contentType, body string) error {
	s.T.Helper()
	var err error
	patient.Until(s.T, "the admin endpoint to answer", func() bool {
		_, err = s.Admin(method, path, contentType, body)
		return !errors.As(err, new(*url.Error))
	})
	if err != nil {
		return err
	}
	patient.Until(s.T, "the servers before to stop", func() bool {
		stacks, err := s.Stacks()
		return err == nil && !stopping(stacks)
	})
	return nil
}

// stopping reports whether a server may still accept connections, or answer requests on idle ones, although it is
// being stopped. Caddy says that a change is done when the goroutines that stop servers have begun.
func stopping(stacks string) bool {
	for goroutine := range strings.SplitSeq(stacks, "\n\n") {
		state, functions, _ := strings.Cut(goroutine, "\n")
		waitsFor := "[sync.WaitGroup.Wait" // the other goroutines
		if strings.Contains(functions, ").Shutdown(") {
			waitsFor = "[select" // the requests that are being answered
		}
		if strings.Contains(functions, "caddyhttp.(*App).stop") && !strings.Contains(state, waitsFor) {
			return true
		}
	}
	return false
}

// Scrape reads the limiter's metrics as Prometheus would. It returns their lines, and the samples that are not zero, without
// the prefix of their names.
func (s *Server) Scrape() (ours string, samples map[string]float64) {
	s.T.Helper()
	text, err := s.Admin("GET", "/metrics", "", "")
	if err != nil {
		s.T.Fatal(err)
	}
	samples = make(map[string]float64)
	for line := range strings.Lines(text) {
		if strings.Contains(line, "caddy_rate_limit_") {
			ours += line
		}
		name, isSample := strings.CutPrefix(strings.TrimSpace(line), "caddy_rate_limit_")
		if !isSample {
			continue
		}
		at := strings.LastIndexByte(name, ' ')
		value, err := strconv.ParseFloat(name[at+1:], 64)
		if err != nil {
			s.T.Fatalf("%s: %v", line, err)
		}
		if value != 0 {
			samples[name[:at]] = value
		}
	}
	return ours, samples
}
