package docs_test

import (
	"regexp"
	"strings"
	"testing"
)

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
