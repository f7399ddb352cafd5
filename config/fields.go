package config

import (
	"fmt"
	"net/textproto"
	"slices"
)

// httpFields are fields of responses that HTTP, the client or the upstream needs, by RFC 9110 to
// 9112 and 6265. The limiter's fields must not replace them.
var httpFields = []string{
	"Accept-Ranges", "Age", "Allow", "Cache-Control", "Connection", "Content-Disposition", "Content-Encoding",
	"Content-Language", "Content-Length", "Content-Location", "Content-Range", "Content-Security-Policy", "Content-Type",
	"Date", "Etag", "Expires", "Keep-Alive", "Last-Modified", "Location", "Proxy-Authenticate", "Proxy-Connection",
	"Retry-After", "Server", "Set-Cookie", "Strict-Transport-Security", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Vary", "Www-Authenticate",
}

// NotHTTP returns an error if an option has the name of a header that HTTP itself needs.
func NotHTTP(option, name string) error {
	if slices.Contains(httpFields, textproto.CanonicalMIMEHeaderKey(name)) {
		return fmt.Errorf("%s: the field %s belongs to HTTP: choose another name", option, name)
	}
	return nil
}
