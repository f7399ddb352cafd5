package cli

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestTableWidth: columns are cut so that lines fit the terminal, those with keys last.
func TestTableWidth(t *testing.T) {
	rows := [][]string{
		{"ZONE", "LIMIT", "STATE", "KEY"},
		{"api", "plans " + strings.Repeat("long ", 30), "limited", strings.Repeat("é", 30)},
		{"clients", "sliding_window_log 100/1m", "allowed", "203.0.113.7"},
	}
	for _, c := range []struct {
		width   int
		longest int
		keys    bool // whether keys are whole
	}{{0, 206, true}, {300, 206, true}, {80, 80, true}, {45, 45, false}, {10, 40, false}} {
		var out strings.Builder
		e := &screen{out: &out, width: c.width}
		if err := e.table(rows); err != nil {
			t.Fatal(err)
		}
		longest := 0
		for line := range strings.Lines(out.String()) {
			longest = max(longest, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
		}
		if longest != c.longest || strings.Contains(out.String(), rows[1][3]) != c.keys {
			t.Errorf("at %d columns: the longest line has %d, want %d, and whole keys: %t\n%s", c.width, longest, c.longest, c.keys, out.String())
		}
		if e.color = true; e.details(rows) != nil || !strings.Contains(out.String(), red+"limited"+noColor+"  ") || !strings.Contains(out.String(), green+"allowed"+noColor+"  ") {
			t.Errorf("colors:\n%q", out.String())
		}
	}
}

// TestAddressSpellings: an address of the endpoint may be a URL, and have no port.
func TestAddressSpellings(t *testing.T) {
	for text, want := range map[string]string{
		"localhost": "localhost:2019", "localhost:7219": "localhost:7219", "http://localhost:7219/": "localhost:7219", "http://localhost": "localhost:2019",
		"[::1]:80": "[::1]:80", "::1": "[::1]:2019", "[::1]": "[::1]:2019", ":2020": ":2020", "unix//run/caddy/": "unix//run/caddy/", "tcp/localhost:1": "tcp/localhost:1",
	} {
		if got := cleanAddress(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// TestFormatSeconds: times have a precision that people can use.
func TestFormatSeconds(t *testing.T) {
	for seconds, want := range map[float64]string{90: "1m30s", 60: "1m", 3600: "1h", 86400: "1d", 12.34: "12.3s", 0.0012: "1.2ms"} {
		if got := formatSeconds(seconds); got != want {
			t.Errorf("%v seconds: got %s, want %s", seconds, got, want)
		}
	}
}
