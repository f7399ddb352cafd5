//go:build deep

// Package keys_test tests that each client has a key of its own, however it spells its requests, and that bans hold for a key.
package keys_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
