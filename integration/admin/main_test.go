//go:build deep

// Package admin_test tests the admin API, while requests come, configs change and Redis is away.
package admin_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
