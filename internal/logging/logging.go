// Package logging has the logger for stores, which outlive the config that opened them.
package logging

import (
	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
)

// Logger returns a logger of the process, not of one config.
func Logger() *zap.Logger { return caddy.Log().Named("http.handlers.rate_limit") }
