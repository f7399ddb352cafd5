package docs_test

import (
	"regexp"
	"strings"
	"testing"
)

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
