package docs_test

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestChangelog: CHANGELOG.md has the form of Keep a Changelog 1.1.0. Versions go down, each has a date
// and a link, and their sections have the six names, in one order. Only Unreleased may be empty.
func TestChangelog(t *testing.T) {
	text := read(t, "CHANGELOG.md")
	title, rest, _ := strings.Cut(text, "\n## ")
	if !strings.HasPrefix(title, "# Changelog\n") || !strings.Contains(title, "keepachangelog.com/en/1.1.0/") || !strings.Contains(title, "semver.org/spec/v2.0.0.html") {
		t.Errorf("the beginning does not name Keep a Changelog 1.1.0 and Semantic Versioning 2.0.0: %s", title)
	}
	versionHeading := regexp.MustCompile(`^\[(Unreleased|\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)\](?: - (\d{4}-\d\d-\d\d))?$`)
	kinds := []string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
	for i, version := range strings.Split(rest, "\n## ") {
		heading, body, _ := strings.Cut(version, "\n")
		match := versionHeading.FindStringSubmatch(heading)
		if match == nil || (match[1] == "Unreleased") != (i == 0) || (match[2] == "") != (i == 0) {
			t.Errorf("heading %q: want [Unreleased] first, then [1.2.3] - 2026-01-31", heading)
			continue
		}
		if !regexp.MustCompile(`(?m)^\[` + regexp.QuoteMeta(match[1]) + `\]: https://\S+$`).MatchString(text) {
			t.Errorf("no link for [%s]", match[1])
		}
		last := -1
		for _, section := range strings.Split(body, "\n### ")[1:] {
			kind, changes, _ := strings.Cut(section, "\n")
			at := slices.Index(kinds, kind)
			if at <= last {
				t.Errorf("%s: section %q, want %s, each once and in this order", match[1], kind, strings.Join(kinds, ", "))
			}
			if last = at; !strings.Contains(changes, "\n- ") {
				t.Errorf("%s: section %s is empty", match[1], kind)
			}
		}
		if last < 0 && i > 0 {
			t.Errorf("%s has no section", match[1])
		}
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
