package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// TestDiagnosisFits: whatever names and errors say, no line is wider than the terminal, nothing in them
// is interpreted, and two hundred zones that are well take two lines.
func TestDiagnosisFits(t *testing.T) {
	hostile := "\x1b[31m\x00\r\nzone \u202e" + strings.Repeat("x", 200)
	d := adminapi.Diagnosis{Level: adminapi.LevelFail, Findings: []adminapi.Finding{
		{Level: adminapi.LevelFail, Check: "answer", Store: "redis", Found: "does not answer: " + hostile, Fix: hostile},
		{Level: adminapi.LevelUnknown, Check: "fleet", Store: "redis", Found: ""},
		{Level: adminapi.LevelWarn, Check: "keys", Zone: "\x1b[2J\n", Found: "one key", Fix: "another"},
		{Level: "other", Check: "of another version, and longer than any", Server: "a b", Found: "x"},
	}}
	for i := range 200 {
		d.Findings = append(d.Findings, adminapi.Finding{Level: adminapi.LevelOK, Check: "limit", Zone: fmt.Sprint(i), Found: "it can refuse"})
	}
	for width, most := range map[int]int{0: 80, 80: 80, 120: 120, 10: 80} {
		var out bytes.Buffer
		s := &screen{out: &out, width: width}
		if err := s.diagnosis(&d, false); err != nil {
			t.Fatal(err)
		}
		lines := 0
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			lines++
			if n := utf8.RuneCountInString(line); n > most || strings.ContainsAny(line, "\x1b\x00\r\u202e") {
				t.Errorf("width %d: %d columns: %q", width, n, line)
			}
		}
		if lines > 60 || !strings.Contains(out.String(), "\n200 other zones\n") || !strings.Contains(out.String(), "200 ok, 1 warn, 1 fail, 1 unknown\n") {
			t.Errorf("width %d: %d lines:\n%s", width, lines, out.String())
		}
	}
	var out bytes.Buffer
	if err := (&screen{out: &out, color: true}).diagnosis(&d, false); err != nil || !strings.Contains(out.String(), red+"fail"+noColor) {
		t.Errorf("%v\n%s", err, out.String())
	}
	if err := (&screen{out: &out}).diagnosis(new(adminapi.Diagnosis), false); err == nil {
		t.Error("an answer without findings is none")
	}
}
