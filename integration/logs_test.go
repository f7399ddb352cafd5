package integration_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// ourLogger is the logger of this module's lines.
const ourLogger = "http.handlers.rate_limit"

// line is a line of Caddy's log.
type line struct {
	Level   string `json:"level"`
	Logger  string `json:"logger"`
	Message string `json:"msg"`
	text    string
}

// lines returns Caddy's log, and the text in it that is not JSON: from a library that writes past
// Caddy's logger.
func (s *server) lines() (lines []line, strange []string) {
	for text := range bytes.Lines(s.log()) {
		l := line{text: string(bytes.TrimSpace(text))}
		if err := json.Unmarshal(text, &l); err != nil {
			strange = append(strange, l.text)
			continue
		}
		lines = append(lines, l)
	}
	return lines, strange
}

// linesOf returns the lines of one logger.
func (s *server) linesOf(logger string) (lines []line) {
	all, _ := s.lines()
	for _, l := range all {
		if l.Logger == logger {
			lines = append(lines, l)
		}
	}
	return lines
}

// withoutRefusals returns this module's lines about anything but refusals, and but what is said of the
// store at start.
func (s *server) withoutRefusals() []line {
	return slices.DeleteFunc(s.linesOf(ourLogger), func(l line) bool {
		return strings.HasPrefix(l.Message, "rate limit exceeded") || l.Message == "the rate limit store answers" ||
			strings.HasPrefix(l.Message, "until the rate limit store answers")
	})
}

func count(lines []line, message string) (n int) {
	for _, l := range lines {
		if l.Message == message {
			n++
		}
	}
	return n
}

// sound fails the test if the store did not answer at some time. Then requests were let through
// uncounted, and other failures say nothing about the limits.
func (s *server) sound(t *testing.T) {
	t.Helper()
	for _, l := range s.linesOf(ourLogger) {
		if l.Level == "error" {
			t.Errorf("Caddy's log says: %s", l.text)
		}
	}
}
