package integration_test

import (
	"os/exec"
	"testing"
)

// TestAlerts: Prometheus takes the alert rules.
func TestAlerts(t *testing.T) {
	t.Parallel()
	need(t, "promtool", "REQUIRE_PROMTOOL")
	if output, err := exec.Command("promtool", "check", "rules", "../examples/prometheus/alerts.yml").CombinedOutput(); err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, output)
	}
}
