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
	"github.com/seed-161337e5/caddyratelimit/store"
)

// TestWithinBounds: what is kept of a reload that changes thousands of zones fits into an entry of the journal.
func TestWithinBounds(t *testing.T) {
	c := &adminapi.Change{Action: actionReload, What: strings.Repeat("\x01", 3*maxKept)}
	for i := range 5000 {
		c.Zones = append(c.Zones, adminapi.ZoneDiff{Zone: fmt.Sprint(i), Kind: adminapi.ZoneNew})
	}
	kept := *c
	kept.Zones, kept.What = withinBounds(c)
	text, err := json.Marshal(kept)
	if err != nil || len(text) > store.MaxJournalEntry || len(kept.Zones) < 50 || !strings.HasSuffix(kept.What, "...") {
		t.Errorf("%d bytes, %d zones, %q, %v", len(text), len(kept.Zones), kept.What, err)
	}
	c = &adminapi.Change{What: "zone z is gone", Zones: c.Zones[:1]}
	if zones, what := withinBounds(c); len(zones) != 1 || what != c.What {
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
