//go:build deep

package observe_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/integration/internal/harness"
)

// TestAlerts: Prometheus takes the alert rules. Each alert fires in trouble, and none without.
func TestAlerts(t *testing.T) {
	t.Parallel()
	harness.NeedProgram(t, "promtool", "REQUIRE_PROMTOOL")
	for _, args := range [][]string{
		{"check", "rules", "../../examples/prometheus/alerts.yml"},
		{"check", "rules", "../../examples/prometheus/recording.yml"},
		{"test", "rules", "testdata/alerts.yml"},
	} {
		if output, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, output)
		}
	}
}

// promtool runs Prometheus's own linter on the limiter's metrics.
func promtool(t *testing.T, metrics string) {
	t.Helper()
	t.Run("promtool", func(t *testing.T) {
		harness.NeedProgram(t, "promtool", "REQUIRE_PROMTOOL")
		cmd := exec.Command("promtool", "check", "metrics")
		cmd.Stdin = strings.NewReader(metrics)
		if output, err := cmd.CombinedOutput(); err != nil || len(output) > 0 {
			t.Errorf("promtool check metrics: %v\n%s", err, output)
		}
	})
}
