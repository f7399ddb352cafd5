package docs_test

import (
	"os/exec"
	"strings"
	"testing"
)

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
