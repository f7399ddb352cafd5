package docs_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"github.com/seed-161337e5/caddyratelimit/adaptive"
	"github.com/seed-161337e5/caddyratelimit/internal/operate/running"
	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// TestPlacesOfChanges: every file and folder that CONTRIBUTING.md names exists.
func TestPlacesOfChanges(t *testing.T) {
	named := regexp.MustCompile("`([\\w./-]+[./][\\w./-]+)`").FindAllStringSubmatch(read(t, "CONTRIBUTING.md"), -1)
	if len(named) < 20 {
		t.Errorf("CONTRIBUTING.md names %d files, want at least 20", len(named))
	}
	for _, name := range named {
		if _, err := os.Stat(name[1]); err != nil {
			t.Error(err)
		}
	}
}

// TestNamesOfTests: each test that a page names is there, and each that tries advice elsewhere.
func TestNamesOfTests(t *testing.T) {
	found := make(map[string]bool)
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	walk := func(path string, file fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, test := range declared.FindAllStringSubmatch(read(t, path), -1) {
			found[test[1]] = true
		}
		return nil
	}
	if err := filepath.WalkDir(".", walk); err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, page := range append(docPages(t), "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "internal/testing/TRACK-RECORD.md", "advice_test.go") {
		for _, test := range regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(read(t, page), -1) {
			named++
			if !found[test] {
				t.Errorf("%s names %s, which is not there", page, test)
			}
		}
	}
	if named < 50 {
		t.Errorf("found only %d names of tests", named)
	}
}

// TestReleaseScripts: the page of a release has the section of its version alone, and a version that has no
// section is an error.
func TestReleaseScripts(t *testing.T) {
	run := func(args ...string) (string, bool) {
		output, err := exec.Command("bash", args...).CombinedOutput()
		return string(output), err == nil
	}
	if notes, ok := run("scripts/changes.sh", "v0.1.0"); !ok || !strings.Contains(notes, "### Added\n") || strings.Contains(notes, "[0.1.0]") {
		t.Errorf("the notes are %s", notes)
	}
	if output, ok := run("scripts/release.sh", "v999.0.0"); ok || !strings.Contains(output, `no changes in a section "## [999.0.0]"`) {
		t.Errorf("a release without changes: %s", output)
	}
}

// TestSupportedVersion: the version that SECURITY.md says gets fixes is the latest in CHANGELOG.md.
func TestSupportedVersion(t *testing.T) {
	latest := regexp.MustCompile(`(?m)^## \[(\d+\.\d+)\.`).FindStringSubmatch(read(t, "CHANGELOG.md"))
	supported := regexp.MustCompile(`(?m)^\| (\S+), the latest \| yes \|$`).FindStringSubmatch(read(t, "SECURITY.md"))
	if latest == nil || supported == nil || latest[1] != supported[1] {
		t.Errorf("CHANGELOG.md has %v, and SECURITY.md supports %v", latest, supported)
	}
}

// TestPackagers: packagers build with the flags of a release.
func TestPackagers(t *testing.T) {
	script := read(t, "scripts/release.sh")
	_, section, _ := strings.Cut(read(t, "examples/README.md"), "## For packagers\n")
	for _, what := range []string{"nobadger,nomysql,nopgx", "-trimpath -buildvcs=false", "-X github.com/caddyserver/caddy/v2.CustomVersion=caddyratelimit-", "CGO_ENABLED=0", "./cmd/caddy"} {
		if !strings.Contains(section, what) {
			t.Errorf("packagers do not read of %s", what)
		}
		if !strings.Contains(script, what) {
			t.Errorf("release.sh does not have %s", what)
		}
	}
}

// TestMetricsOnThePage: docs/observability.md names each metric that the module exports, and no other.
func TestMetricsOnThePage(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "docs/observability.md"), "\n## Metrics\n")
	section, _, _ = strings.Cut(section, "\n## ")
	named := make(map[string]bool)
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|").FindAllStringSubmatch(section, -1) {
		for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[1], -1) {
			named["caddy_rate_limit_"+name[1]] = true
		}
	}
	for metric := range metricLabels(t) {
		if !named[metric] {
			t.Errorf("the page does not name %s", metric)
		}
		delete(named, metric)
	}
	for name := range named {
		t.Errorf("the page names %s, which does not exist", name)
	}
}

// TestCompiledSystems: docs/compatibility.md names the systems for which make compiles.
func TestCompiledSystems(t *testing.T) {
	_, systems, _ := strings.Cut(read(t, "docs/compatibility.md"), "\n| Systems | ")
	systems, _, _ = strings.Cut(systems, "\n")
	found := regexp.MustCompile(`(?m)^(?:MORE_)?PLATFORMS \?= (.*)$`).FindAllStringSubmatch(read(t, "Makefile"), -1)
	if len(found) != 2 {
		t.Fatal(found)
	}
	for _, list := range found {
		for _, name := range strings.Fields(list[1]) {
			if !strings.Contains(systems, name) {
				t.Errorf("the page does not name %s", name)
			}
		}
	}
}

// TestUnreleased: the pages agree whether there is a release.
func TestUnreleased(t *testing.T) {
	unreleased := strings.Contains(read(t, "CHANGELOG.md"), "\n## [0.1.0] - not released yet\n")
	for page, says := range map[string]string{
		"README.md":          "There is no release yet",
		"SECURITY.md":        "| yes, until 0.1 is released |",
		"examples/README.md": "There is no release yet",
	} {
		if strings.Contains(read(t, page), says) != unreleased {
			t.Errorf("CHANGELOG.md and %s differ: %q", page, says)
		}
	}
}

// TestFirstTests: the README names the tests that CI runs.
func TestFirstTests(t *testing.T) {
	if !strings.Contains(read(t, ".ci/run"), "\nmake test\n") || !strings.Contains(read(t, "README.md"), "\n```sh\nmake test\n```\n") {
		t.Error("README.md and .ci/run do not run the same tests")
	}
}

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
	new(running.Config).Describe(descriptions)
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
