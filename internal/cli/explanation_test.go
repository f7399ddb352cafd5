package cli

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// TestConclusionNamesTheLanguage: the first line of explain says what the caller gets, in the language of the refusal.
func TestConclusionNamesTheLanguage(t *testing.T) {
	for want, x := range map[string]adminapi.Explanation{
		"It is refused with status 429.":                                       {Status: 429, Language: "problem"},
		"It is refused with status 200 and grpc-status 8, and always will be.": {Status: 200, Language: "grpc", GRPCStatus: 8, Never: true},
	} {
		x.Outcome = "limited"
		if got := conclusion(&x); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
