package cli

import (
	"testing"
)

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
