package harness

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/patient"
)

// OurLogger is the logger of this module's lines.
const OurLogger = "http.handlers.rate_limit"

// Line is a line of Caddy's log.
type Line struct {
	Level   string `json:"level"`
	Logger  string `json:"logger"`
	Message string `json:"msg"`
	Text    string
}

// Lines returns Caddy's log, and the text in it that is not JSON: from a library that writes past
// Caddy's logger.
func (s *Server) Lines() (lines []Line, strange []string) {
	for text := range bytes.Lines(s.Log()) {
		l := Line{Text: string(bytes.TrimSpace(text))}
		if err := json.Unmarshal(text, &l); err != nil {
			strange = append(strange, l.Text)
			continue
		}
		lines = append(lines, l)
	}
	return lines, strange
}

// LinesOf returns the lines of one logger.
func (s *Server) LinesOf(logger string) (lines []Line) {
	all, _ := s.Lines()
	for _, l := range all {
		if l.Logger == logger {
			lines = append(lines, l)
		}
	}
	return lines
}

// Sound fails the test if the store did not answer at some time. Then requests were let through
// uncounted, and other failures say nothing about the limits.
func (s *Server) Sound(t *testing.T) {
	t.Helper()
	for _, l := range s.LinesOf(OurLogger) {
		if l.Level == "error" {
			t.Errorf("Caddy's log says: %s", l.Text)
		}
	}
}

// AwaitLog waits until Caddy's log has a line with all of some texts.
func (s *Server) AwaitLog(texts ...string) {
	s.T.Helper()
	patient.Until(s.T, "a line of the log with "+strings.Join(texts, ", "), func() bool {
		for line := range bytes.Lines(s.Log()) {
			if !slices.ContainsFunc(texts, func(text string) bool { return !bytes.Contains(line, []byte(text)) }) {
				return true
			}
		}
		return false
	})
}
