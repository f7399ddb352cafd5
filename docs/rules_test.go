package docs_test

import (
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestRulesNameMetrics: the rules for Prometheus name metrics that exist, or that a rule before records.
func TestRulesNameMetrics(t *testing.T) {
	labels, recorded := metricLabels(t), make(map[string]bool)
	type rule struct{ Record, Alert, Expr string }
	var rules []rule
	for _, file := range []string{"recording.yml", "alerts.yml"} {
		var of struct {
			Groups []struct{ Rules []rule }
		}
		if err := yaml.Unmarshal([]byte(read(t, "examples/prometheus/"+file)), &of); err != nil {
			t.Fatal(err)
		}
		for _, g := range of.Groups {
			rules = append(rules, g.Rules...)
		}
	}
	name, found := regexp.MustCompile(`[\w:]*caddy_rate_limit_[\w:]+`), 0
	for _, r := range rules {
		if r.Record != "" {
			recorded[r.Record] = true
		}
		for _, metric := range name.FindAllString(r.Expr, -1) {
			if found++; recorded[metric] {
				continue
			}
			if _, exists := labels[strings.TrimSuffix(metric, "_bucket")]; !exists {
				t.Errorf("the rule %s%s names %s, which does not exist", r.Record, r.Alert, metric)
			}
		}
	}
	if found < len(rules)/2 || len(recorded) < 8 {
		t.Errorf("%d rules have %d metrics, and record %v", len(rules), found, recorded)
	}
}
