package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// fence matches a config in a page.
var fence = regexp.MustCompile("(?ms)^```(caddyfile|json)\n(.*?)^```$")

// TestConfigsInTheDocs loads every Caddyfile and every handler in JSON of the README and the docs.
func TestConfigsInTheDocs(t *testing.T) {
	pages := docPages(t)
	found := 0
	for _, page := range append(pages, "README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, match := range fence.FindAllStringSubmatch(string(text), -1) {
			found++
			var config []byte
			if strings.Contains(match[2], `"apps"`) {
				config = []byte(match[2])
			} else if match[1] == "json" {
				config = caddytest.ConfigOf(match[2])
			} else if config, _, err = caddytest.Adapt(match[2]); err != nil {
				t.Errorf("%s, config %d: adapting: %v\n%s", page, i+1, err, match[2])
				continue
			}
			if got := caddytest.ValidateJSON(t, config); got != "ok" {
				t.Errorf("%s, config %d: %s\n%s", page, i+1, got, match[2])
			}
		}
	}
	if found < 3 {
		t.Errorf("found only %d configs", found)
	}
}

// TestConfigsAreFormatted: a config that somebody copies is as "caddy fmt" would write it, so Caddy does not warn.
func TestConfigsAreFormatted(t *testing.T) {
	formatted := func(place, config string) {
		if want := strings.TrimSpace(string(caddyfile.Format([]byte(config)))); want != strings.TrimSpace(config) {
			t.Errorf("%s:\n%s\nwould be formatted as\n%s", place, config, want)
		}
	}
	found := 0
	for _, page := range append(docPages(t), "README.md") {
		for _, match := range fence.FindAllStringSubmatch(read(t, page), -1) {
			if match[1] == "caddyfile" {
				found++
				formatted(page, match[2])
			}
		}
	}
	files, err := filepath.Glob("examples/*/*/Caddyfile")
	if err != nil || len(files) == 0 || found == 0 {
		t.Fatal(found, files, err)
	}
	for _, file := range append(files, "examples/compose/Caddyfile") {
		formatted(file, read(t, file))
	}
}
