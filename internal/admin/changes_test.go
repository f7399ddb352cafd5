package admin

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// TestWithinBounds: what is logged of a reload that changes thousands of zones is bounded.
func TestWithinBounds(t *testing.T) {
	var all []adminapi.ZoneDiff
	for i := range 5000 {
		all = append(all, adminapi.ZoneDiff{Zone: fmt.Sprint(i), Kind: adminapi.ZoneNew})
	}
	zones, what := withinBounds(all, strings.Repeat("\x01", 3*maxLogged))
	text, err := json.Marshal([]any{zones, what})
	if err != nil || len(text) > 3*maxLogged || len(zones) < 50 || !strings.HasSuffix(what, "...") {
		t.Errorf("%d bytes, %d zones, %q, %v", len(text), len(zones), what, err)
	}
	if zones, what := withinBounds(all[:1], "zone z is gone"); len(zones) != 1 || what != "zone z is gone" {
		t.Errorf("a short one: got %+v, %q", zones, what)
	}
}

// TestWhoIsPlain: the name in a certificate is one line of bounded length, which no terminal obeys.
func TestWhoIsPlain(t *testing.T) {
	for name, want := range map[string]string{
		"Ann":                          "Ann",
		"a\x1b[31m\nb\u202e":           "a\ufffd[31m\ufffdb\ufffd",
		" \xff ":                       "\ufffd",
		"x" + strings.Repeat("ü", 200): "x" + strings.Repeat("ü", 127),
		strings.Repeat("\n", 300):      strings.Repeat("\ufffd", maxWho/3),
	} {
		leaf := &x509.Certificate{Subject: pkix.Name{CommonName: name}}
		got := whoAsks(&http.Request{TLS: &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}})
		if got != want || len(got) > maxWho || !utf8.ValidString(got) {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
