package admin

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed-161337e5/caddyratelimit/internal/adminapi"
)

// TestSummary: what is logged of a reload that changes thousands of zones is bounded.
func TestSummary(t *testing.T) {
	var all []adminapi.ZoneDiff
	for i := range 5000 {
		all = append(all, adminapi.ZoneDiff{Zone: fmt.Sprint(i), Kind: adminapi.ZoneGone})
	}
	if text := summary(all); !strings.HasSuffix(text, "; zone 9 is gone; and 4990 more") {
		t.Errorf("%q", text)
	}
	all[0].Zone = strings.Repeat("\x01", 1<<20)
	if text := summary(all); len(text) > 2048 || !strings.HasSuffix(text, "...") {
		t.Errorf("%d bytes: %q", len(text), text)
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
