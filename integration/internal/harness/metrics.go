package harness

import (
	"strconv"
	"strings"
)

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
