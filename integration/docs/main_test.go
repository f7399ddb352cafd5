//go:build deep

// Package docs_test follows the pages: it runs recipes, commands and examples as readers would.
package docs_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
