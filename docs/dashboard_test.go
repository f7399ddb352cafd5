package docs_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"github.com/seed-161337e5/caddyratelimit/adaptive"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/admin"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// metricLabels returns the labels of each metric that the module exports. Those of adaptive limits exist with their handlers.
func metricLabels(t *testing.T) map[string][]string {
	t.Helper()
	ctx := caddytest.Config(t)
	caddytest.LoadInto(t, ctx, "adaptive_concurrency {}")
	app, err := ctx.App("adaptive_concurrency")
	if err != nil {
		t.Fatal(err)
	}
	descriptions := make(chan *prometheus.Desc, 100)
	new(admin.Config).Describe(descriptions)
	app.(*adaptive.App).Describe(descriptions)
	close(descriptions)
	labels := make(map[string][]string)
	description := regexp.MustCompile(`fqName: "(\w+)".*variableLabels: \{([^}]*)\}`)
	for d := range descriptions {
		match := description.FindStringSubmatch(d.String())
		if match == nil {
			t.Fatalf("cannot read %s", d)
		}
		labels[match[1]] = strings.FieldsFunc(match[2], func(r rune) bool { return r == ',' || r == ' ' })
	}
	return labels
}

// TestDashboardShowsEveryMetric: the dashboard shows all metrics, and neither a metric nor a label
// that does not exist.
func TestDashboardShowsEveryMetric(t *testing.T) {
	labels, shown := metricLabels(t), make(map[string]bool)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "examples/grafana/dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`caddy_rate_limit_\w+`)
	used := regexp.MustCompile(`(\w+)=~?"|by \(([^)]*)\)`)
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			allowed := []string{"instance", "le"} // of Prometheus itself, and of histograms
			for _, metric := range name.FindAllString(target.Expr, -1) {
				metric = strings.TrimSuffix(metric, "_bucket")
				if _, exists := labels[metric]; !exists {
					t.Errorf("panel %q shows %s, which does not exist", panel.Title, metric)
				}
				shown[metric] = true
				allowed = append(allowed, labels[metric]...)
			}
			for _, match := range used.FindAllStringSubmatch(target.Expr, -1) {
				for label := range strings.SplitSeq(match[1]+match[2], ",") {
					if label = strings.TrimSpace(label); !slices.Contains(allowed, label) {
						t.Errorf("panel %q uses the label %q, which its metrics do not have", panel.Title, label)
					}
				}
			}
		}
	}
	for metric := range labels {
		if !shown[metric] {
			t.Errorf("no panel shows %s", metric)
		}
	}
}

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
