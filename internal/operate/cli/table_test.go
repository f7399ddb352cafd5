package cli

import (
	"testing"
)

// TestAddressSpellings: an address of the endpoint may be a URL, and have no port.
func TestAddressSpellings(t *testing.T) {
	for text, want := range map[string]string{
		"localhost": "localhost:2019", "localhost:7219": "localhost:7219", "http://localhost:7219/": "localhost:7219", "http://localhost": "localhost:2019",
		"[::1]:80": "[::1]:80", "::1": "[::1]:2019", "[::1]": "[::1]:2019", ":2020": ":2020", "unix//run/caddy/": "unix//run/caddy/", "tcp/localhost:1": "localhost:1",
	} {
		if got, err := cleanAddress(text); got != want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
	}
}
