package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// fence matches a config in a page.
var fence = regexp.MustCompile("(?ms)^```(caddyfile|json)\n(.*?)^```$")

// TestConfigsInTheDocs loads every Caddyfile and every handler in JSON of the README and the docs.
func TestConfigsInTheDocs(t *testing.T) {
	pages := docPages(t)
	found := 0
	for _, page := range append(pages, "README.md") {
		if page == "docs/stores.md" {
			continue // its store is another module: examples/simplestore runs the page
		}
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
