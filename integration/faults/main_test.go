//go:build deep

// Package faults_test tests what happens while Redis does not work: each fault, under load, with one server, Sentinel and a
// Cluster.
package faults_test

import (
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
