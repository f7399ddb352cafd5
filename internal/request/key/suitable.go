package key

import (
	"fmt"
	"strings"

	"github.com/seed-161337e5/caddyratelimit/internal/placeholder"
)

// checkSuitable returns an error for a placeholder of Caddy that cannot distinguish clients,
// because it never has the same value twice, or never has a value.
func checkSuitable(named string) error {
	if strings.EqualFold(named, placeholder.HeaderPrefix+"Host") {
		return fmt.Errorf("{%s} is always empty, because Go's HTTP server removes this field from the header; "+
			"did you mean {host}, in JSON {http.request.host}?", named)
	}
	each := neverRepeated[named]
	if strings.HasPrefix(named, "time.now") {
		each = "request"
	}
	if each != "" {
		return fmt.Errorf("{%s} is different for each %s, so that nothing would be limited; did you mean {client_ip}, in JSON {http.vars.client_ip}?",
			named, each)
	}
	return nil
}

// neverRepeated are placeholders that never have the same value twice. Each connection or request has another one.
var neverRepeated = map[string]string{
	"http.request.remote": "connection", "http.request.remote.port": "connection",
	"http.request.uuid": "request", "http.request.duration": "request", "http.request.duration_ms": "request",
}
