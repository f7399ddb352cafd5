package admin

import (
	"net"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxWho is how many bytes of a name are kept.
const maxWho = 256

// whoAsks says who sends a request to the admin API: the name in the certificate of the client, or else its address.
// On a Unix socket it is "local".
func whoAsks(r *http.Request) string {
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		leaf := r.TLS.PeerCertificates[0]
		for _, name := range append([]string{leaf.Subject.CommonName}, append(leaf.EmailAddresses, leaf.DNSNames...)...) {
			if name = plain(name); name != "" {
				return name
			}
		}
		return "certificate " + leaf.SerialNumber.String()[:min(len(leaf.SerialNumber.String()), maxWho)]
	}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil && host != "" {
		return host
	}
	return "local"
}

// plain returns the text of a certificate as one line that no terminal obeys, and cuts it.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, text[:min(len(text), maxWho)])
	return strings.TrimSpace(strings.ToValidUTF8(text[:min(len(text), maxWho)], ""))
}
