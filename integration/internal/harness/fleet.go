package harness

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// Limited is a route of a Caddyfile: requests to the zone's path meet the zone. Requests to the
// same path below /peek are only told how much of the limit is left.
func Limited(zone, options, store, then string) string {
	route := func(path, options, then string) string {
		return "handle " + path + zone + " {\nrate_limit {\nzone " + zone + " {\n" + options + "\n}\n" + store + "}\n" + then + "\n}\n"
	}
	return route("/", options, then) + route("/peek/", options+"\ncost 0", "respond ok")
}

// Left asks how much of a zone is left, and charges nothing.
func (s *Server) Left(client *http.Client, zone string) int64 {
	s.T.Helper()
	a, left := s.Get(client, "/peek/"+zone), int64(0)
	if _, err := fmt.Sscanf(a.Header.Get("RateLimit"), `"`+zone+`";r=%d`, &left); err != nil || a.Status != http.StatusOK {
		s.T.Fatalf("peek at %s: status %d, %v, error %v", zone, a.Status, a.Header, err)
	}
	return left
}

// AwaitLeft waits until that much of a zone is left.
func (s *Server) AwaitLeft(client *http.Client, zone string, want int64) {
	s.T.Helper()
	patient.UntilEqual(s.T, "what is left of zone "+zone, func() int64 { return s.Left(client, zone) }, want)
}

// Waiting returns how many requests this module makes wait, according to Caddy's goroutines.
func (s *Server) Waiting() int {
	s.T.Helper()
	stacks, err := s.Stacks()
	if err != nil {
		s.T.Fatal(err)
	}
	return strings.Count(stacks, "limiter.(*retryWait).sleep(")
}

// AwaitWaiting waits until so many requests wait.
func (s *Server) AwaitWaiting(want int) {
	s.T.Helper()
	patient.Until(s.T, "requests to wait, or to leave", func() bool { return s.Waiting() == want })
}
