//go:build deep

// Package limits_test tests that instances admit exactly what limits say: in each kind of window, with lend, over reloads and
// for several zones at once.
package limits_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
