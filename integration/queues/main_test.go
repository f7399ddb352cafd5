//go:build deep

// Package queues_test tests requests that wait or hold a slot: their order, how long they wait, and what is given back when a
// client leaves or a Caddy ends.
package queues_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
