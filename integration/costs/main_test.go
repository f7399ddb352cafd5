//go:build deep

// Package costs_test tests costs that are known late: of responses, of bodies, and of tokens of language models.
package costs_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
