//go:build deep

// Package floods_test tests that floods let nothing pass, and cost Redis and other clients little.
package floods_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
