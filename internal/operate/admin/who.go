package admin

import (
	"net"
	"net/http"
)

// whoAsks says who sends a request to the admin API, by its address. On a Unix socket it is "local".
func whoAsks(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil && host != "" {
		return host
	}
	return "local"
}
