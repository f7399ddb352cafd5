//go:build deep

// Package observe_test tests the log, the access log, traces and metrics.
package observe_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
