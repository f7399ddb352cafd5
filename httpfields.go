package caddyratelimit

import (
	"fmt"
	"net/textproto"
	"slices"
)

// httpFields are fields of responses that HTTP itself, the client or the upstream needs,
// by RFC 9110 to 9112 and 6265. Nothing of ours may take their place.
var httpFields = []string{
	"Accept-Ranges", "Age", "Allow", "Cache-Control", "Connection", "Content-Disposition", "Content-Encoding",
	"Content-Language", "Content-Length", "Content-Location", "Content-Range", "Content-Security-Policy", "Content-Type",
	"Date", "Etag", "Expires", "Keep-Alive", "Last-Modified", "Location", "Proxy-Authenticate", "Proxy-Connection",
	"Retry-After", "Server", "Set-Cookie", "Strict-Transport-Security", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Vary", "Www-Authenticate",
}

// notOfHTTP rules out the name of such a field.
func notOfHTTP(option, name string) error {
	if slices.Contains(httpFields, textproto.CanonicalMIMEHeaderKey(name)) {
		return fmt.Errorf("%s: the field %s is HTTP's own: choose another name", option, name)
	}
	return nil
}
