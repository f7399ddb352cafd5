// Package logging has the logger of what outlives the config that opened it.
package logging

import (
	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
)

// Logger is for stores, which outlive the config that opened them.
func Logger() *zap.Logger { return caddy.Log().Named("http.handlers.rate_limit") }
