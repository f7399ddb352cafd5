package harness

import (
	"errors"
	"net/url"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

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
