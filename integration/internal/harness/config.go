package harness

import (
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
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

// Patch changes one value of the config.
func (s *Server) Patch(path, value string) error {
	return s.Configure("PATCH", path, "application/json", value)
}

// Configure changes the config. From then on no request meets the config before.
func (s *Server) Configure(method, path, contentType, body string) error {
	s.T.Helper()
	if err := s.Change(method, path, contentType, body); err != nil {
		return err
	}
	patient.Until(s.T, "the servers before to stop", func() bool {
		stacks, err := s.Stacks()
		return err == nil && !stopping(stacks)
	})
	return nil
}

// StopsServers is in the stack of each goroutine that stops servers.
const StopsServers = "caddyhttp.(*App).stop"

// stopping reports whether a server may still accept connections, or answer requests on idle ones, although it is
// being stopped. Caddy says that a change is done when the goroutines that stop servers have begun.
func stopping(stacks string) bool {
	for goroutine := range strings.SplitSeq(stacks, "\n\n") {
		state, functions, _ := strings.Cut(goroutine, "\n")
		waitsFor := "[sync.WaitGroup.Wait" // the other goroutines
		if strings.Contains(functions, ").Shutdown(") {
			waitsFor = "[select" // the requests that are being answered
		}
		if strings.Contains(functions, StopsServers) && !strings.Contains(state, waitsFor) {
			return true
		}
	}
	return false
}

// Change sends a request that changes something, and repeats it if the connection breaks: each load
// replaces the admin server, and the next request may still reach the server that is closing. A
// repeated change has no effect.
func (s *Server) Change(method, path, contentType, body string) (err error) {
	s.T.Helper()
	patient.Until(s.T, "the admin endpoint to answer", func() bool {
		_, err = s.Admin(method, path, contentType, body)
		return !errors.As(err, new(*url.Error))
	})
	return err
}

// Find returns the admin path of a field of a zone, wherever the Caddyfile adapter puts the handler.
func (s *Server) Find(zone, field string) string {
	s.T.Helper()
	text, err := s.Admin("GET", "/config/", "", "")
	if err != nil {
		s.T.Fatal(err)
	}
	var config any
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		s.T.Fatal(err)
	}
	end := "/rate_limits/" + zone + "/" + field
	if path := FindSuffix(config, "/config", end); path != "" {
		return path
	}
	s.T.Fatalf("no %s in %s", end, text)
	return ""
}

// FindSuffix returns the path of a value of a config that ends so, or nothing.
func FindSuffix(value any, path, end string) string {
	if strings.HasSuffix(path, end) {
		return path
	}
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if found := FindSuffix(member, path+"/"+name, end); found != "" {
				return found
			}
		}
	case []any:
		for i, member := range value {
			if found := FindSuffix(member, path+"/"+strconv.Itoa(i), end); found != "" {
				return found
			}
		}
	}
	return ""
}
