package routes

import "testing"

// TestPatterns: only a pattern that spells out what it matches keeps clients from making up a value.
func TestPatterns(t *testing.T) {
	for pattern, want := range map[string]bool{
		"^us-": true, "us-": true, "^us-$": false, "^(?:one|two)$": false, "^(key-of-alice|key-of-bob)$": false, "(?i)^Key$": false,
		"^us-.*$": true, "^[a-z]{32}$": true, "^key-?1$": false, "^a|b$": true, "(": true, "^a+$": true, `^a\d$`: true,
	} {
		if got := matchesMany(pattern); got != want {
			t.Errorf("%s: got %t, want %t", pattern, got, want)
		}
	}
}
