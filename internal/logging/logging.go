// Package logging has the logger of what outlives a config, and what several packages log alike.
package logging

import (
	"strings"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
)

// Logger returns a logger of the process, not of one config.
func Logger() *zap.Logger { return caddy.Log().Named("http.handlers.rate_limit") }

// maxKey is how many bytes of a key a line shows. Clients may choose keys as long as a request's
// header may be, and a new one for each line.
const maxKey = 1024

// Key returns as much of a key as a line shows.
func Key(key string) string {
	if len(key) <= maxKey {
		return key
	}
	return strings.ToValidUTF8(key[:maxKey], "") + "..."
}
