package suggest_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/suggest"
)

// TestNearest: a typing error is found, and nothing is suggested for another word.
func TestNearest(t *testing.T) {
	candidates := []string{"db", "key", "mode", "match", "events", "window", "token_bucket", "http.request.method"}
	for word, want := range map[string]string{
		"eventz":              "events",
		"evnets":              "events", // two letters swapped are two edits
		"evnetz":              "",
		"Token_Bucket":        "token_bucket",
		"tokn_bucket":         "token_bucket",
		"mod":                 "mode",
		"http.request.methd":  "http.request.method",
		"http.request.header": "",
		"dc":                  "", // too short for an edit
		"path":                "", // two edits from match
		"key":                 "key",
		"":                    "",
	} {
		hint := suggest.Hint(word, candidates)
		if (hint == "") != (want == "") || want != "" && hint != `; did you mean "`+want+`"?` {
			t.Errorf("Hint(%q) = %q", word, hint)
		}
		if got := suggest.Nearest(word, candidates); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
