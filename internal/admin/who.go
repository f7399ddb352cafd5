package admin

import (
	"net"
	"net/http"
	"strings"
)

// maxWho is how many bytes of a name are kept.
const maxWho = 256

// whoAsks says who sends a request to the admin API: the name in the certificate of the client, or else its address.
// On a Unix socket it is "local".
func whoAsks(r *http.Request) string {
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		leaf := r.TLS.PeerCertificates[0]
		for _, name := range append([]string{leaf.Subject.CommonName}, append(leaf.EmailAddresses, leaf.DNSNames...)...) {
			if name = strings.ToValidUTF8(name, ""); name != "" {
				return name[:min(len(name), maxWho)]
			}
		}
		return "certificate " + leaf.SerialNumber.String()[:min(len(leaf.SerialNumber.String()), maxWho)]
	}
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil && host != "" {
		return host
	}
	return "local"
}
