package harness

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// Scrape reads the limiter's metrics as Prometheus would, one line each.
func (s *Server) Scrape(client *http.Client) string {
	s.T.Helper()
	a := s.Get(client, "/metrics")
	if a.Status != http.StatusOK {
		s.T.Fatalf("/metrics: status %d: %s", a.Status, a.Body)
	}
	var ours strings.Builder
	for line := range strings.Lines(a.Body) {
		if strings.Contains(line, "caddy_rate_limit_") {
			ours.WriteString(line)
		}
	}
	return ours.String()
}

// Nonzero returns the samples that are not zero, without the prefix of their names.
func Nonzero(t *testing.T, text string) map[string]float64 {
	t.Helper()
	samples := make(map[string]float64)
	for line := range strings.Lines(text) {
		name, isSample := strings.CutPrefix(strings.TrimSpace(line), "caddy_rate_limit_")
		if !isSample {
			continue
		}
		at := strings.LastIndexByte(name, ' ')
		value, err := strconv.ParseFloat(name[at+1:], 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if value != 0 {
			samples[name[:at]] = value
		}
	}
	return samples
}
