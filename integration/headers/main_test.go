//go:build deep

// Package headers_test tests what responses tell clients, and clients and parsers of other people that read it.
package headers_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
