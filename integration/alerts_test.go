package integration_test

import (
	"os/exec"
	"testing"
)

// TestAlerts: Prometheus takes the alert rules. Each alert fires in trouble, and none without.
func TestAlerts(t *testing.T) {
	t.Parallel()
	need(t, "promtool", "REQUIRE_PROMTOOL")
	for _, args := range [][]string{
		{"check", "rules", "../examples/prometheus/alerts.yml"},
		{"test", "rules", "testdata/alerts.yml"},
	} {
		if output, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, output)
		}
	}
}
