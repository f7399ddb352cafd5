//go:build deep

// Package cli_test tests caddy rate-limit as operators use it, down to what they see on a screen.
package cli_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
