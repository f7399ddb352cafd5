package caddyratelimit_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-161337e5/caddyratelimit/internal/metrics"
)

// TestDashboardShowsEveryMetric: the dashboard shows all metrics, and no metric that does not exist.
func TestDashboardShowsEveryMetric(t *testing.T) {
	text, err := os.ReadFile("docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			ID      int
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	shown, ids := make(map[string]bool), make(map[int]bool)
	name := regexp.MustCompile(`caddy_rate_limit_\w+`)
	for _, panel := range dashboard.Panels {
		if ids[panel.ID] {
			t.Errorf("two panels have the number %d", panel.ID)
		}
		ids[panel.ID] = true
		for _, target := range panel.Targets {
			for _, metric := range name.FindAllString(target.Expr, -1) {
				shown[strings.TrimSuffix(metric, "_bucket")] = true
			}
		}
	}
	descriptions := make(chan *prometheus.Desc, 100)
	new(metrics.Collector).Describe(descriptions)
	close(descriptions)
	for d := range descriptions {
		metric := name.FindString(d.String())
		if !shown[metric] {
			t.Errorf("no panel shows %s", metric)
		}
		delete(shown, metric)
	}
	for metric := range shown {
		t.Errorf("a panel shows %s, which does not exist", metric)
	}
}
