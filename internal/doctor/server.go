package doctor

import (
	"net/netip"
	"slices"
	"strings"
)

// Server says where a server takes the address of a client from.
type Server struct {
	Name    string
	Trusted []string // ranges of addresses of proxies, or the name of the module that has them

	TrustsSockets, Strict bool

	Headers []string
}

var serverChecks = []check[Server]{
	{"client_address", clientAddress},
}

// maxShown bounds lists in findings.
const maxShown = 3

// clientAddress says whose address counts as the client's, and whether clients can choose it.
func clientAddress(s *Server) []result {
	if len(s.Trusted) == 0 && !s.TrustsSockets {
		return ok("the client's address is that of the connection: there are no trusted_proxies")
	}
	from := strings.Join(s.Headers, ", ")
	if everybody := slices.IndexFunc(s.Trusted, isEverybody); everybody >= 0 {
		return fail(nameProxies.With(), "trusted_proxies contains %s, so any client can choose its address in %s", s.Trusted[everybody], from)
	}
	by := shorten(s.Trusted)
	if s.TrustsSockets {
		by = strings.TrimPrefix(by+", Unix sockets", ", ")
	}
	if !s.Strict && slices.ContainsFunc(s.Headers, func(h string) bool { return strings.EqualFold(h, "X-Forwarded-For") }) {
		return warn(readFromRight.With(),
			"the first address in X-Forwarded-For counts, and clients can write it themselves if the proxy (%s) only appends to it", by)
	}
	return ok("the client's address is read from %s if the connection comes from %s", from, by)
}

// isEverybody reports whether a range has all addresses.
func isEverybody(text string) bool {
	prefix, err := netip.ParsePrefix(text)
	return err == nil && prefix.Bits() == 0
}

// shorten lists the first few of some texts.
func shorten(texts []string) string {
	if len(texts) > maxShown {
		return strings.Join(texts[:maxShown], ", ") + " and others"
	}
	return strings.Join(texts, ", ")
}
