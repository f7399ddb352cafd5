package caddyratelimit_test

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-161337e5/caddyratelimit/internal/testing/caddytest"
)

// twins matches a config of docs/recipes.md, and what follows it: the same in JSON.
var twins = regexp.MustCompile("(?ms)^```caddyfile\n(.*?)^```\n\n(<details>.*?^</details>\n\n)?")

// TestGoldenRecipesInJSON: docs/recipes.md has each recipe in JSON, too, as Caddy adapts it.
func TestGoldenRecipesInJSON(t *testing.T) {
	const page = "docs/recipes.md"
	text := read(t, page)
	whole := twins.ReplaceAllStringFunc(text, func(both string) string {
		recipe := twins.FindStringSubmatch(both)[1]
		config, _, err := caddytest.Adapt(recipe)
		if err != nil {
			t.Fatalf("%v\n%s", err, recipe)
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, config, "", "\t"); err != nil {
			t.Fatal(err)
		}
		return "```caddyfile\n" + recipe + "```\n\n<details><summary>The same in JSON</summary>\n\n```json\n" + indented.String() + "\n```\n\n</details>\n\n"
	})
	if n := strings.Count(whole, "<details>"); n < 20 {
		t.Errorf("found only %d recipes", n)
	}
	if whole == text {
		return
	}
	if !updating() {
		t.Fatalf("the JSON in %s is not that of the Caddyfiles: run make golden", page)
	}
	if err := os.WriteFile(page, []byte(whole), 0o644); err != nil { //nolint:gosec // a page of the docs
		t.Fatal(err)
	}
}
